; TSX: read after typescript.scm, which holds for it as well.

(export_statement
  (variable_declaration
    (variable_declarator
      name: (identifier)
      value: (arrow_function)))) @exported_function

(variable_declaration
  (variable_declarator
    name: (identifier) @var_call
    value: (call_expression
      function: (identifier)))) @var_call

(jsx_element
  open_tag: (jsx_opening_element
    name: [(identifier) (member_expression)] @element)) @element

(jsx_self_closing_element
  name: [(identifier) (member_expression)] @self_closing) @self_closing

(jsx_expression
  (identifier) @jsx_expression) @jsx_expression

(member_expression
  object: (identifier) @member
  property: (property_identifier) @member) @member

(ternary_expression
  consequence: (parenthesized_expression
    (jsx_element
      open_tag: (jsx_opening_element
        name: (identifier))))) @ternary_element

(ternary_expression
  alternative: (jsx_self_closing_element
    name: (identifier))) @ternary_self_closing
