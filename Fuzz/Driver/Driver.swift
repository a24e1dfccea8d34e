/// libFuzzer's own driver.
///
/// The package manager renames a program's `main` to `<module>_main` and points the linker to it, so the linker never
/// finds libFuzzer's `main`. Each fuzz target defines the renamed function, which calls this one.
@_silgen_name("LLVMFuzzerRunDriver")
public func runFuzzer(
  _ argumentCount: UnsafeMutablePointer<CInt>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
  _ testOneInput: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// Ends the process if `finding` finds an error, so that libFuzzer keeps the input.
public func check(_ data: UnsafePointer<UInt8>?, _ size: Int, _ finding: ([UInt8]) -> String?) -> CInt {
  if let found = finding(Array(UnsafeBufferPointer(start: data, count: size))) { fatalError(found) }
  return 0
}
