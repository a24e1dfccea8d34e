import FuzzDriver
import FuzzOracles

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  check(data, size, DownloadRecordOracle.finding)
}

@_cdecl("FuzzDownloadRecord_main")
public func main(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) -> CInt {
  var count = count
  var arguments = arguments
  return runFuzzer(&count, &arguments, testOneInput)
}
