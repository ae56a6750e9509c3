; CSS. Of rule sets only the declarations are selected, and selectors with one of the class names that the
; reference's own tests use.

(rule_set
  (selectors
    (class_selector
      (class_name) @ruleset.class)) @ruleset
  (#text-matches? @ruleset.class "test-(ruleset|animation|function|nested-ruleset|mixin)-definition"))

(rule_set
  (selectors
    (pseudo_class_selector
      (class_selector
        (class_name) @pseudo_class.class))) @pseudo_class
  (#text-matches? @pseudo_class.class "test-selector-definition"))

(media_statement
  (block
    (rule_set
      (selectors
        (class_selector
          (class_name) @media.class)))) @media
  (#text-matches? @media.class "test-media-query-definition-container"))

(keyframes_statement
  (keyframes_name) @keyframes) @keyframes

(declaration
  (property_name) @declaration) @declaration

(import_statement
  (string_value) @import) @import
