// Package capability makes tools of Python code: the JSON Schema of what a function or a
// script's parser of the command line takes, and skills of functions that have no
// manifest.
//
// The code is never executed: the Python program of package pyast reads it in the sandbox and
// makes the schemas. This package cleans its answers, which may be forged, and imports and
// writes skills.
//
// What is not said by type hints is taken from the docstring (Google, NumPy or reST style), and then from the
// defaults; what nothing says is any value. A parameter that no JSON value could be given
// for (a function, an open file) is a problem where it has no default, and is left out
// where it has one.
//
//	a parameter                     its schema
//	int, float, str, bool, None     integer, number, string, boolean, null
//	list, tuple, set and their kin  array, with items or prefixItems
//	dict, Mapping                   object, with additionalProperties
//	Optional, Union, X | Y          a list of types, or anyOf
//	Literal, Enum                   enum; of an Enum its values
//	dataclass, TypedDict,           object, with its fields; itself within itself by $ref
//	NamedTuple
//	Annotated                       with description and bounds
//	datetime, date, time,           string, with format
//	timedelta, UUID
//	Path, Decimal, bytes            string; Decimal a number too, bytes in base64
//	*args, **kwargs                 an array of that name; additionalProperties
package capability
