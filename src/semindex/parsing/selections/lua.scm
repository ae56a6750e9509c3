; Lua. Written for another family of grammars than the reference's; adaptations.py has the rest.

(function_declaration
  name: (identifier) @function) @function

(function_declaration
  name: (dot_index_expression
    table: (identifier)
    field: (identifier) @member)) @member

; Those of a local declaration are part of it: adaptations.py leaves them out.
(assignment_statement
  (variable_list
    (identifier) @assignment)) @assignment

(variable_declaration
  [
    (variable_list
      (identifier) @local)
    (assignment_statement
      (variable_list
        (identifier) @local))
  ]) @local
