; C#. What newer grammars cut differently is put right in adaptations.py.

(using_directive) @using

(namespace_declaration
  name: [(qualified_name) (identifier)] @namespace) @namespace

(file_scoped_namespace_declaration
  name: [(qualified_name) (identifier)] @file_namespace) @file_namespace

(class_declaration
  name: (identifier) @class) @class

(interface_declaration
  name: (identifier) @interface) @interface

(struct_declaration
  name: (identifier) @struct) @struct

(enum_declaration
  name: (identifier) @enum) @enum

(record_declaration
  name: (identifier) @record) @record

(method_declaration
  name: (identifier) @method) @method

(property_declaration
  name: (identifier) @property) @property

(event_declaration
  name: (identifier) @event) @event

(delegate_declaration
  name: (identifier) @delegate) @delegate

(attribute
  name: (identifier) @attribute) @attribute

(type_parameter
  name: (identifier) @type_parameter) @type_parameter

(query_expression) @query
