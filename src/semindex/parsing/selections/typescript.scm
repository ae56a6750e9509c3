; TypeScript, and the first part of what is selected in TSX.

(function_signature
  name: (identifier) @function_signature) @function_signature

(method_signature
  name: (property_identifier) @method_signature) @method_signature

(abstract_method_signature
  name: (property_identifier) @abstract_method) @abstract_method

(abstract_class_declaration
  name: (type_identifier) @abstract_class) @abstract_class

(module
  name: (identifier) @module) @module

(function_declaration
  name: (identifier) @function) @function

(method_definition
  name: (property_identifier) @method) @method

(class_declaration
  name: (type_identifier) @class) @class

; A call with a title and a callback: `describe("…", () => …)` and whatever else has that shape.
(call_expression
  function: (identifier) @titled_call
  arguments: (arguments
    (string) @titled_call
    [(arrow_function) (function_expression)]) @titled_call)

(assignment_expression
  left: (member_expression
    object: (identifier) @member_function
    property: (property_identifier) @member_function)
  right: [(arrow_function) (function_expression)]) @member_function

(arrow_function) @arrow

(switch_statement) @switch

(switch_case) @case

(switch_default) @default

(enum_declaration
  name: (identifier) @enum) @enum

(export_statement
  decorator: (decorator
    (call_expression
      function: (identifier) @decorated_export))
  declaration: (class_declaration
    name: (type_identifier))) @decorated_export

(internal_module
  name: (identifier) @namespace) @namespace

(interface_declaration
  name: (type_identifier) @interface) @interface

(type_alias_declaration
  name: (type_identifier) @type_alias) @type_alias

(public_field_definition
  name: (property_identifier) @field) @field

(variable_declaration
  (variable_declarator
    name: (identifier) @var_function
    value: (arrow_function))) @var_function
