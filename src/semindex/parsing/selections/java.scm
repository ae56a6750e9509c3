; Java.

(module_declaration
  name: (scoped_identifier) @module) @module

(package_declaration
  (scoped_identifier)) @package

(line_comment) @comment

(class_declaration
  name: (identifier) @class) @class

(interface_declaration
  name: (identifier) @interface) @interface

(enum_declaration
  name: (identifier) @enum) @enum

(record_declaration
  name: (identifier) @record) @record

(annotation_type_declaration
  name: (identifier) @annotation) @annotation

(constructor_declaration
  name: (identifier) @constructor) @constructor

(method_declaration
  type: (_) @method
  name: (identifier) @method) @method

(lambda_expression) @lambda

(field_declaration
  type: (_)
  declarator: (variable_declarator
    name: (identifier) @field)) @field

(import_declaration
  (scoped_identifier) @import) @import

(type_parameters
  (type_parameter) @type_parameters) @type_parameters
