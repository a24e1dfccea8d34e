import LarkspurHTTP
import Testing

@Suite struct UploadFileIdentityTests {
  @Test func changes() {
    let file = UploadFileIdentity(size: 5, modificationSeconds: 7, modificationNanoseconds: 9, inode: 11)
    #expect(file.change(to: file) == nil)
    func change(_ edit: (inout UploadFileIdentity) -> Void) -> UploadFileIdentity.Change? {
      var later = file
      edit(&later)
      return file.change(to: later)
    }
    #expect(change { $0.size = 6 } == .size)
    #expect(change { $0.inode = 12 } == .inode)
    #expect(change { $0.modificationSeconds = -7 } == .modificationTime)
    // A change within one second counts.
    #expect(change { $0.modificationNanoseconds = 10 } == .modificationTime)
  }
}
