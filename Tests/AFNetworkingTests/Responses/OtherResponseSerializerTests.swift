import AFNetworking
import AFNetworkingXML
import Foundation
import Testing

@Suite struct PropertyListResponseSerializerTests {
  let serializer = AFPropertyListResponseSerializer()

  @Test(arguments: [PropertyListSerialization.PropertyListFormat.xml, .binary])
  func formats(_ format: PropertyListSerialization.PropertyListFormat) throws {
    let data = try PropertyListSerialization.data(fromPropertyList: ["foo": "bar"], format: format, options: 0)
    let (object, error) = serializer.read(try Responses.make(type: "application/x-plist"), data)
    #expect(object as? [String: String] == ["foo": "bar"] && error == nil)
    let wrong = serializer.read(try Responses.make(type: "text/xml"), data)
    #expect(wrong.object == nil && wrong.error?.code == NSURLErrorCannotDecodeContentData)
  }

  @Test func noPropertyList() throws {
    let (object, error) = serializer.read(try Responses.make(type: "application/x-plist"), "<plist><dict>")
    #expect(object == nil && error != nil)
  }

  /// Deeply nested arrays from a server are refused and do not overflow the stack.
  @Test func theDeepestPropertyLists() throws {
    let depth = 200_000
    let text =
      "<plist version=\"1.0\">" + String(repeating: "<array>", count: depth)
      + String(repeating: "</array>", count: depth)
      + "</plist>"
    // Each array has the next object as its only member; references and offsets take four bytes each.
    var binary = Data("bplist00".utf8)
    func append(_ number: Int, bytes: Int) {
      for shift in (0..<bytes).reversed() { binary.append(UInt8(truncatingIfNeeded: number >> (shift * 8))) }
    }
    for index in 0..<depth {
      binary.append(0xA1)
      append(min(index + 1, depth - 1), bytes: 4)
    }
    let table = binary.count
    for index in 0..<depth { append(8 + index * 5, bytes: 4) }
    append(0, bytes: 6)
    append(0x0404, bytes: 2)
    for number in [depth, 0, table] { append(number, bytes: 8) }
    for data in [Data(text.utf8), binary] {
      let (object, error) = serializer.read(try Responses.make(type: "application/x-plist"), data)
      #expect(object == nil && error != nil)
    }
  }

  /// Makes a binary property list of these objects, with references of one byte.
  private func binary(_ objects: [[UInt8]]) -> Data {
    var (bytes, offsets) = (Array("bplist00".utf8), [UInt8]())
    for object in objects {
      offsets += [UInt8(bytes.count >> 8), UInt8(bytes.count & 255)]
      bytes += object
    }
    let table = bytes.count
    bytes += offsets + [0, 0, 0, 0, 0, 0, 2, 1]
    for number in [objects.count, 0, table] {
      bytes += (0..<8).reversed().map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }
    return Data(bytes)
  }

  /// 40 arrays, each with the next one twice, would expand to about 10^12 objects. The list is refused.
  @Test func aPropertyListThatGrows() throws {
    let numbers: ClosedRange<UInt8> = 1...40
    let end: [UInt8] = [0x08]
    let bomb = binary(numbers.map { [0xA2, $0, $0] } + [end])
    // Each array claims 200 members.
    let claims = binary(numbers.map { [0xAF, 0x10, 200, $0] } + [end])
    for data in [bomb, claims] {
      let (object, error) = serializer.read(try Responses.make(type: "application/x-plist"), data)
      #expect(object == nil && error != nil)
    }
    // Lists of 100 bytes, which expand to 16,000 and to 260,000 objects.
    for (levels, isRead) in [(13, true), (17, false)] as [(UInt8, Bool)] {
      let list = binary((1...levels).map { [0xA2, $0, $0] } + [end])
      let (object, error) = serializer.read(try Responses.make(type: "application/x-plist"), list)
      #expect((object != nil) == isRead && (error == nil) == isRead)
    }
    // A few shared objects are permitted.
    let shared = binary([[0xA3, 1, 1, 2], [0xA2, 2, 2], [0x51, 0x61]])
    let (object, _) = serializer.read(try Responses.make(type: "application/x-plist"), shared)
    let all = try #require(object as? [Any])
    #expect(all.count == 3 && (all[0] as? [String]) == ["a", "a"] && (all[2] as? String) == "a")
  }

  @Test func manyObjects() throws {
    let many = (0..<50_000).map { ["key": "\($0)"] }
    let data = try PropertyListSerialization.data(fromPropertyList: many, format: .binary, options: 0)
    let (object, _) = serializer.read(try Responses.make(type: "application/x-plist"), data)
    #expect((object as? [[String: String]])?.count == 50_000)
  }

  @Test func nothing() throws {
    let (object, error) = serializer.read(try Responses.make(204, type: "application/x-plist"), nil)
    #expect(object == nil && error == nil)
  }

  @Test func copies() throws {
    let serializer = AFPropertyListResponseSerializer(format: .binary, readOptions: .mutableContainers)
    serializer.acceptableStatusCodes = IndexSet(integer: 100)
    serializer.acceptableContentTypes = ["test/type"]
    let copy = try #require(serializer.copy() as? AFPropertyListResponseSerializer)
    for other in [copy, try Archive.roundTrip(serializer)] {
      #expect(other !== serializer && other.format == .binary && other.readOptions == .mutableContainers)
      #expect(other.acceptableStatusCodes == [100] && other.acceptableContentTypes == ["test/type"])
    }
    #expect(AFPropertyListResponseSerializer.serializer().format == .xml)
  }
}

@Suite struct CompoundResponseSerializerTests {
  let serializer = AFCompoundResponseSerializer.compoundSerializer(
    withResponseSerializers: [AFImageResponseSerializer(), AFJSONResponseSerializer()])

  @Test func theFirstThatCan() throws {
    let (object, error) = serializer.read(try Responses.make(type: "application/json"), #"{"key":"value"}"#)
    #expect(object as? [String: String] == ["key": "value"] && error == nil)
    let image = serializer.read(try Responses.make(type: "image/gif"), Data(ImageTests.gif))
    #expect((image.object as? AFImage)?.pixelWidth == 3 && image.error == nil)
  }

  @Test func noSerializerCanRead() throws {
    let (object, error) = serializer.read(try Responses.make(type: "text/html"), "<p>")
    #expect(object as? Data == Data("<p>".utf8) && error == nil)
    let bad = serializer.read(try Responses.make(404, type: "text/html"), "<p>")
    #expect(bad.object as? Data == Data("<p>".utf8) && bad.error?.code == NSURLErrorBadServerResponse)
  }

  /// If a status is wrong, the error comes from the serializer that made the object.
  @Test func theErrorOfTheOneThatCan() throws {
    let (object, error) = serializer.read(try Responses.make(404, type: "text/json"), "{}")
    #expect(object is [String: Any] && error?.code == NSURLErrorBadServerResponse)
  }

  @Test func copies() throws {
    serializer.acceptableStatusCodes = IndexSet(integer: 100)
    serializer.acceptableContentTypes = ["test/type"]
    let copy = try #require(serializer.copy() as? AFCompoundResponseSerializer)
    for other in [copy, try Archive.roundTrip(serializer)] {
      #expect(other !== serializer && other.responseSerializers.count == 2)
      #expect(other.responseSerializers.first is AFImageResponseSerializer)
      #expect(other.responseSerializers.last is AFJSONResponseSerializer)
      #expect(other.acceptableStatusCodes == [100] && other.acceptableContentTypes == ["test/type"])
    }
    #expect(AFCompoundResponseSerializer().responseSerializers.isEmpty)
  }
}

@Suite struct XMLResponseSerializerTests {
  static let text = #"<?xml version="1.0" encoding="UTF-8"?><foo attr1="1" attr2="2"><bar>someValue</bar></foo>"#

  @Test(arguments: ["application/xml", "text/xml"]) func types(_ type: String) throws {
    let response = try Responses.make(type: type)
    let parsed = AFXMLParserResponseSerializer().read(response, Self.text)
    let names = Names()
    let parser = try #require(parsed.object as? XMLParser)
    parser.delegate = names
    #expect(parser.parse() && names.seen == ["foo", "bar"] && parsed.error == nil)
    let read = AFXMLDocumentResponseSerializer().read(response, Self.text)
    let document = try #require(read.object as? XMLDocument)
    #expect(document.rootElement()?.attribute(forName: "attr2")?.stringValue == "2" && read.error == nil)
  }

  @Test func otherTypes() throws {
    let response = try Responses.make(type: "nonstandard/xml")
    for serializer in [AFXMLParserResponseSerializer(), AFXMLDocumentResponseSerializer()] {
      let (object, error) = serializer.read(response, Self.text)
      #expect(object == nil && error?.code == NSURLErrorCannotDecodeContentData)
    }
  }

  @Test(arguments: ["<foo", "<foo>", "<a><b></a></b>", "text", "<a/><b/>", "<a/>text", "{}", " "]) func invalid(
    _ text: String
  ) throws {
    let (object, error) = AFXMLDocumentResponseSerializer().read(try Responses.make(type: "text/xml"), text)
    #expect(object == nil && error != nil)
    let nothing = AFXMLDocumentResponseSerializer().read(try Responses.make(204, type: "text/xml"), nil)
    #expect(nothing.object == nil && nothing.error == nil)
  }

  /// A document of 120 KB that would expand to 900 MB.
  @Test func aDocumentThatGrows() throws {
    let entity = String(repeating: "x", count: 30_000)
    let text = "<!DOCTYPE r [<!ENTITY a '\(entity)'>]><r>\(String(repeating: "&a;", count: 30_000))</r>"
    for serializer in [AFXMLParserResponseSerializer(), AFXMLDocumentResponseSerializer(xmlDocumentOptions: 0)] {
      let (object, error) = serializer.read(try Responses.make(type: "text/xml"), text)
      #expect(object == nil && error?.domain == XMLParser.errorDomain)
      #expect(error?.code == XMLParser.ErrorCode.entityRefLoopError.rawValue)
      #expect(error?.localizedFailureReason != nil)
    }
    let small = "<!DOCTYPE r [<!ENTITY a 'some'>]><r>&a;</r>"
    let (object, error) = AFXMLDocumentResponseSerializer().read(try Responses.make(type: "text/xml"), small)
    #expect((object as? XMLDocument)?.rootElement()?.stringValue == "some" && error == nil)
  }

  @Test func copies() throws {
    let document = AFXMLDocumentResponseSerializer(xmlDocumentOptions: 1)
    document.acceptableStatusCodes = IndexSet(integer: 100)
    let copy = try #require(document.copy() as? AFXMLDocumentResponseSerializer)
    for other in [copy, try Archive.roundTrip(document)] {
      #expect(other !== document && other.options == 1 && other.acceptableStatusCodes == [100])
    }
    let parser = AFXMLParserResponseSerializer.serializer()
    parser.acceptableContentTypes = ["test/type"]
    let other = try #require(parser.copy() as? AFXMLParserResponseSerializer)
    #expect(other !== parser && other.acceptableContentTypes == ["test/type"])
    #expect(try Archive.roundTrip(parser).acceptableContentTypes == ["test/type"])
  }

  /// External entities are not resolved, so a document cannot read local files.
  @Test func foreignEntities() throws {
    let file = FileManager.default.temporaryDirectory.appending(path: "larkspur-entity-\(UUID().uuidString)")
    try Data("secret".utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let text = #"<!DOCTYPE a [<!ENTITY e SYSTEM "\#(file.absoluteString)">]><a>&e;</a>"#
    let (object, _) = AFXMLDocumentResponseSerializer().read(try Responses.make(type: "text/xml"), text)
    #expect((object as? XMLDocument)?.xmlString.contains("secret") != true)
    #expect((object as? XMLDocument)?.rootElement()?.stringValue?.contains("secret") != true)
    // Internal entities of the document are resolved.
    let own = #"<!DOCTYPE a [<!ENTITY e "own">]><a>&e; &lt;</a>"#
    let document = AFXMLDocumentResponseSerializer().read(try Responses.make(type: "text/xml"), own).object
    #expect((document as? XMLDocument)?.rootElement()?.stringValue == "own <")
  }

  final class Names: NSObject, XMLParserDelegate {
    var seen: [String] = []

    func parser(
      _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?, qualifiedName qName: String?,
      attributes attributeDict: [String: String] = [:]
    ) { seen.append(elementName) }
  }
}
