; Go.

(function_declaration) @function

(method_declaration) @method

(type_declaration) @type

(var_declaration) @var

(const_declaration) @const

(package_clause) @package

(import_declaration) @import
