; PHP.

(class_declaration
  name: (name) @class) @class

(interface_declaration
  name: (name) @interface) @interface

(trait_declaration
  name: (name) @trait) @trait

(enum_declaration
  name: (name) @enum) @enum

(function_definition
  name: (name) @function) @function

(method_declaration
  name: (name) @method) @method

(arrow_function) @arrow

(property_declaration
  (property_element
    (variable_name
      (name) @property))) @property

(property_promotion_parameter
  name: (variable_name
    (name) @promoted)) @promoted

(const_declaration
  (const_element
    (name) @const)) @const

(namespace_definition
  name: (namespace_name) @namespace) @namespace

(namespace_use_declaration
  (namespace_use_clause
    (qualified_name) @use)) @use

(object_creation_expression
  (declaration_list)) @anonymous_class

(attribute_group
  (attribute
    (name) @attribute)) @attribute

(match_expression) @match

(heredoc) @heredoc

(nowdoc) @nowdoc
