// Shows what AddressSanitizer reports: `MemoryProbe freed` reads freed memory, `MemoryProbe beyond` reads past the end
// of an allocation, and `MemoryProbe fine` does neither.

let count = 64
let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: count)
bytes.initialize(repeating: 1, count: count)
let mode = CommandLine.arguments.dropFirst().first ?? ""
// The index depends on the number of arguments, so that the optimizer cannot fold the access.
var place = CommandLine.arguments.count > 5 ? 1 : 0
if mode == "beyond" { place += count }
if mode == "freed" { bytes.deallocate() }
print(bytes[place] == 1 ? "read" : "read something else")
if mode != "freed" { bytes.deallocate() }
