; Python.

(class_definition
  name: (identifier) @class) @class

(decorated_definition
  definition: (class_definition
    name: (identifier))) @decorated_class

(function_definition
  name: (identifier) @function) @function

(decorated_definition
  definition: (function_definition
    name: (identifier))) @decorated_function

(expression_statement
  (assignment
    left: (identifier) @lambda
    right: (parenthesized_expression
      (lambda)))) @lambda

(expression_statement
  (assignment
    left: (identifier) @comprehension
    right: [
      (list_comprehension)
      (dictionary_comprehension)
      (set_comprehension)
    ])) @comprehension

(with_statement) @with

(try_statement) @try

(import_from_statement) @import_from

(import_statement) @import

(typed_parameter
  type: (type)) @typed_parameter

(expression_statement
  (assignment
    left: (identifier) @annotated
    type: (type))) @annotated
