import AFNetworking
import Foundation
import Testing

/// Tests archives with unexpected contents.
@Suite struct UntrustedArchiveTests {
  private func decoder(_ write: (NSKeyedArchiver) -> Void) throws -> NSKeyedUnarchiver {
    let archiver = NSKeyedArchiver(requiringSecureCoding: true)
    write(archiver)
    archiver.finishEncoding()
    let decoder = try NSKeyedUnarchiver(forReadingFrom: archiver.encodedData)
    decoder.decodingFailurePolicy = .setErrorAndReturn
    return decoder
  }

  /// A wrong value of any kind for any key does not trap.
  @Test func wrongValues() throws {
    let types: [any (NSObject & NSCoding).Type] = [
      AFHTTPRequestSerializer.self, AFJSONRequestSerializer.self, AFPropertyListRequestSerializer.self,
      AFHTTPResponseSerializer.self, AFJSONResponseSerializer.self, AFPropertyListResponseSerializer.self,
      AFImageResponseSerializer.self, AFCompoundResponseSerializer.self, AFSecurityPolicy.self, AFHTTPClient.self,
      AFURLConnectionOperation.self, AFHTTPRequestOperation.self, AFHTTPSessionManager.self,
      AFJSONPatchResponseSerializer.self, AFJSONPatchOperation.self,
    ]
    let keys = [
      "mutableHTTPRequestHeaders", "queryStringSerializationStyle", "stringEncoding", "timeoutInterval", "cachePolicy",
      "HTTPMethodsEncodingParametersInURI", "writingOptions", "format", "writeOptions", "acceptableStatusCodes",
      "acceptableContentTypes", "readingOptions", "removesKeysWithNullValues", "readOptions", "imageScale",
      "responseSerializers", "SSLPinningMode", "pinnedCertificates", "baseURL", "parameterEncoding",
      "defaultHeaderNames", "defaultHeaderValues", "request", "response", "error", "responseData", "identifier",
      "requestSerializer", "responseSerializer", "securityPolicy", "state", "totalBytesRead", "networkServiceType",
      "type", "path", "from", "value",
    ]
    let wrong: [(NSKeyedArchiver, String) -> Void] = [
      { $0.encode(NSURL(fileURLWithPath: "/"), forKey: $1) }, { $0.encode("a\r\nb" as NSString, forKey: $1) },
      { $0.encode(NSArray(array: [1, "a", NSNull()]), forKey: $1) }, { $0.encode(NSData(), forKey: $1) },
      { $0.encode(NSDictionary(dictionary: ["a": 1]), forKey: $1) }, { $0.encode(Int64.min, forKey: $1) },
      { $0.encode(Int64.max, forKey: $1) }, { $0.encode(Double.nan, forKey: $1) }, { $0.encode(NSDate(), forKey: $1) },
    ]
    for type in types {
      for write in wrong {
        for key in keys {
          let object = type.init(coder: try decoder { write($0, key) })
          #expect(object == nil || object?.isKind(of: type) == true)
        }
        _ = type.init(coder: try decoder { archiver in for key in keys { write(archiver, key) } })
      }
    }
  }

  /// An unknown pinning mode decodes as `.certificate`, so that pinning stays on.
  @Test(arguments: [Int64.min, -1, 3, .max]) func pinningStays(number: Int64) throws {
    let policy = try AFSecurityPolicy(coder: decoder { $0.encode(number, forKey: "SSLPinningMode") })
    #expect(policy?.sslPinningMode == .certificate)
  }
}
