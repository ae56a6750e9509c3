; Vue. Written for another family of grammars than the reference's; adaptations.py has the rest.

(document) @document

(template_element) @template

(script_element) @script

(script_element
  (raw_text) @script_text)

(style_element) @style

(style_element
  (raw_text) @style_text)
