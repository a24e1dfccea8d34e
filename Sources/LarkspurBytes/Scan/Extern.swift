// The parts of C that this module uses. `CLarkspurScan` is linked, not imported, so that clients need no module map: see
// decision 35. `CLarkspurScan.h` describes the functions. `ExternTests` compares these declarations with the header.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

@_extern(c) func larkspur_name_stops16(_ from: UnsafeRawPointer) -> UInt32
@_extern(c) func larkspur_value_stops16(_ from: UnsafeRawPointer) -> UInt32
@_extern(c) func larkspur_value_stops32(_ from: UnsafeRawPointer) -> UInt32
@_extern(c) func larkspur_line_stops16(_ from: UnsafeRawPointer) -> UInt32
@_extern(c) func larkspur_high_bits16(_ from: UnsafeRawPointer) -> UInt32
