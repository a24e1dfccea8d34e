import Foundation
import Larkspur

/// Reads certificates from files, each as DER.
enum CertificateFiles {
  private static let extensions: Set<String> = ["cer", "crt", "der", "pem"]

  static func certificates(inDirectory directory: URL) throws -> Set<Data> {
    let files = try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
    return Set(files.filter { extensions.contains($0.pathExtension.lowercased()) }.flatMap(certificates(of:)))
  }

  /// - Returns: The certificates, or none if the file cannot be read or holds something else.
  static func certificates(of file: URL) -> [Data] {
    guard let bytes = try? Data(contentsOf: file) else { return [] }
    return (TLSCertificate.read(bytes) ?? []).map(\.der)
  }
}
