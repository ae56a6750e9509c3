; HTML. Scripts and style sheets are nodes of their own kind and never an element.

(document) @document

(element
  (start_tag
    (tag_name) @element)) @element

(script_element
  (start_tag
    (tag_name) @script)) @script

(style_element
  (start_tag
    (tag_name) @style)) @style

(attribute
  (attribute_name) @attribute) @attribute

(comment) @comment

(text) @text

(raw_text) @raw_text

(self_closing_tag
  (tag_name) @self_closing) @self_closing

(doctype) @doctype
