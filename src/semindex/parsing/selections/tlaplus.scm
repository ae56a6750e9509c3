; TLA+. A module is the whole file.

(module
  name: (identifier) @module) @module

(operator_definition
  name: (identifier) @operator) @operator

(function_definition
  name: (identifier) @function) @function

(variable_declaration
  (identifier) @variable) @variable

(constant_declaration
  (identifier) @constant) @constant
