; Solidity.

(contract_declaration
  name: (identifier) @contract) @contract

(interface_declaration
  name: (identifier) @interface) @interface

(library_declaration
  name: (identifier) @library) @library

(function_definition
  name: (identifier) @function) @function

(modifier_definition
  name: (identifier) @modifier) @modifier

(constructor_definition) @constructor

(fallback_receive_definition
  (visibility)
  (state_mutability)) @fallback

(struct_declaration
  name: (identifier) @struct) @struct

(enum_declaration
  name: (identifier) @enum) @enum

(event_definition
  name: (identifier) @event) @event

(error_declaration
  name: (identifier) @error) @error

(state_variable_declaration
  name: (identifier) @state_variable) @state_variable

(using_directive
  (type_alias) @using) @using
