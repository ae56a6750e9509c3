; TOML.

(table) @table

(table_array_element) @table_array_element

(pair) @pair

(array) @array

(inline_table) @inline_table

(string) @string

(integer) @integer

(float) @float

(boolean) @boolean

(offset_date_time) @offset_date_time

(local_date) @local_date

(local_time) @local_time
