import TestKit
import Testing

/// What compiles with `import FoundationNetworking` compiles with `import Larkspur`: every public declaration of the
/// toolchain's module is here, and is as good.
@Suite(.ownThread) struct SurfaceTests {
  @Test func everyDeclarationOfFoundationNetworkingIsHere() throws {
    let folders = try SymbolGraph.folders()
    let theirs = Surface(try .extract("FoundationNetworking", folders: []), of: "FoundationNetworking")
    let ours = Surface(try .extract("Larkspur", folders: folders), of: "Larkspur")
    // The search finds what is there.
    #expect(theirs.declarations.count > 500)
    #expect(theirs.declarations["URLSession.dataTask(with:completionHandler:)"]?.count == 2)
    #expect(theirs.declarations["NSURLRequest.NetworkServiceType.voip"]?.first?.kind == "swift.enum.case")
    let gaps = ours.gaps(to: theirs)
    for gap in gaps where surfaceExceptions[gap.path] == nil { Issue.record("\(gap.path) \(gap.words)") }
    for path in surfaceExceptions.keys.sorted() where !gaps.contains(where: { $0.path == path }) {
      Issue.record("\(path) does not differ any more")
    }
  }
}
