; JavaScript, JSX and JSON. Comments are selected where they stand directly before a definition. Objects, arrays and
; pairs with a quoted key are selected at every level: that is what makes chunks of JSON.

((comment)* @method
  .
  (method_definition
    name: (property_identifier) @method.name) @method
  (#text-is-not? @method.name "constructor"))

((comment)* @class
  .
  [
    (class
      name: (_) @class)
    (class_declaration
      name: (_) @class)
  ] @class)

((comment)* @function
  .
  [
    (function_declaration
      name: (identifier) @function)
    (generator_function_declaration
      name: (identifier) @function)
  ] @function)

((comment)* @lexical_function
  .
  (lexical_declaration
    (variable_declarator
      name: (identifier) @lexical_function
      value: [(arrow_function) (function_expression)]) @lexical_function))

((comment)* @var_function
  .
  (variable_declaration
    (variable_declarator
      name: (identifier) @var_function
      value: [(arrow_function) (function_expression)]) @var_function))

(object) @object

(pair
  key: (string) @pair
  value: [
    (object)
    (array)
    (string)
    (number)
    (true)
    (false)
    (null)
  ] @pair) @pair

(array) @array
