import AFNetworking
import Foundation
import Testing

/// Tests copies and archives of request serializers.
@Suite struct SerializerCopyTests {
  private func configured(_ serializer: AFHTTPRequestSerializer) -> AFHTTPRequestSerializer {
    serializer.setValue("own", forHTTPHeaderField: "X-Own")
    serializer.stringEncoding = String.Encoding.isoLatin1.rawValue
    serializer.timeoutInterval = 7
    serializer.allowsCellularAccess = false
    serializer.cachePolicy = .reloadIgnoringLocalCacheData
    serializer.httpShouldHandleCookies = false
    serializer.httpShouldUsePipelining = true
    serializer.networkServiceType = .video
    serializer.httpMethodsEncodingParametersInURI = ["GET", "PUT"]
    return serializer
  }

  private func expectConfigured(_ serializer: AFHTTPRequestSerializer) throws {
    #expect(serializer.value(forHTTPHeaderField: "X-Own") == "own")
    #expect(serializer.stringEncoding == String.Encoding.isoLatin1.rawValue)
    #expect(serializer.httpMethodsEncodingParametersInURI == ["GET", "PUT"])
    let request = try serializer.request(withMethod: "GET", urlString: "http://a", parameters: nil)
    #expect(request.timeoutInterval == 7)
    #expect(!request.allowsCellularAccess)
    #expect(request.cachePolicy == .reloadIgnoringLocalCacheData)
    #expect(!request.httpShouldHandleCookies)
    #expect(request.httpShouldUsePipelining)
    #expect(request.networkServiceType == .video)
  }

  private func archived<Object: NSObject & NSSecureCoding>(_ object: Object) throws -> Object? {
    let data = try NSKeyedArchiver.archivedData(withRootObject: object, requiringSecureCoding: true)
    return try NSKeyedUnarchiver.unarchivedObject(ofClass: Object.self, from: data)
  }

  @Test func aCopyHasEverything() throws {
    let original = configured(AFHTTPRequestSerializer())
    original.setQueryStringSerializationWith { _, _, _ in "block" }
    let copy = try #require(original.copy() as? AFHTTPRequestSerializer)
    try expectConfigured(copy)
    #expect(try copy.request(withMethod: "GET", urlString: "http://a", parameters: 1).url?.query == "block")
    copy.setValue(nil, forHTTPHeaderField: "X-Own")
    #expect(original.value(forHTTPHeaderField: "X-Own") == "own")
  }

  @Test func anArchiveHasEverythingButTheBlock() throws {
    let original = configured(AFHTTPRequestSerializer())
    original.setQueryStringSerializationWith { _, _, _ in "block" }
    let restored = try #require(try archived(original))
    try expectConfigured(restored)
    #expect(try restored.request(withMethod: "GET", urlString: "http://a", parameters: ["a": 1]).url?.query == "a=1")
    let plain = try #require(try archived(AFHTTPRequestSerializer()))
    #expect(plain.httpRequestHeaders == AFHTTPRequestSerializer().httpRequestHeaders)
    #expect(try plain.request(withMethod: "GET", urlString: "http://a", parameters: nil).timeoutInterval == 60)
  }

  @Test func theKindsOfBodiesAreCopiedAndArchived() throws {
    let json = AFJSONRequestSerializer(writingOptions: .sortedKeys)
    #expect((configured(json).copy() as? AFJSONRequestSerializer)?.writingOptions == .sortedKeys)
    #expect(try archived(json)?.writingOptions == .sortedKeys)
    let list = AFPropertyListRequestSerializer(format: .binary, writeOptions: 3)
    let copy = try #require(configured(list).copy() as? AFPropertyListRequestSerializer)
    #expect(copy.format == .binary && copy.writeOptions == 3)
    try expectConfigured(copy)
    let restored = try #require(try archived(list))
    #expect(restored.format == .binary && restored.writeOptions == 3)
    try expectConfigured(restored)
  }

  @Test func aSubclassIsCopiedAsItself() throws {
    let original = SigningSerializer(secret: "s3cret")
    _ = configured(original)
    let copy = try #require(original.copy() as? SigningSerializer)
    #expect(copy.secret == "s3cret")
    try expectConfigured(copy)
  }
}

/// A subclass as it is written for Apple's systems, with an initializer of its own and the methods of `NSCoding`.
private final class SigningSerializer: AFHTTPRequestSerializer, @unchecked Sendable {
  let secret: String

  init(secret: String) {
    self.secret = secret
    super.init()
  }

  required init?(coder: NSCoder) {
    secret = coder.decodeObject(of: NSString.self, forKey: "secret") as String? ?? ""
    super.init(coder: coder)
  }

  override func encode(with coder: NSCoder) {
    super.encode(with: coder)
    coder.encode(secret as NSString, forKey: "secret")
  }
}
