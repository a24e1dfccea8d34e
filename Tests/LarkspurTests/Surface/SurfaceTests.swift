import TestKit
import Testing

/// A program that compiles with `import FoundationNetworking` compiles with `import Larkspur`: every public declaration
/// of the toolchain's module has an equivalent here.
@Suite(.ownThread) struct SurfaceTests {
  @Test func everyDeclarationOfFoundationNetworkingIsHere() throws {
    let directories = try SymbolGraph.directories()
    let theirs = Surface(try .extract("FoundationNetworking", directories: []), of: "FoundationNetworking")
    let ours = Surface(try .extract("Larkspur", directories: directories), of: "Larkspur")
    // Guards against an extraction that finds nothing, which would let every comparison pass.
    #expect(theirs.declarations.count > 500)
    #expect(theirs.declarations["URLSession.dataTask(with:completionHandler:)"]?.count == 2)
    #expect(theirs.declarations["NSURLRequest.NetworkServiceType.voip"]?.first?.kind == "swift.enum.case")
    let gaps = ours.gaps(to: theirs)
    for gap in gaps where surfaceExceptions[gap.path] == nil { Issue.record("\(gap.path) \(gap.reason)") }
    for path in surfaceExceptions.keys.sorted() where !gaps.contains(where: { $0.path == path }) {
      Issue.record("\(path) does not differ any more")
    }
  }
}
