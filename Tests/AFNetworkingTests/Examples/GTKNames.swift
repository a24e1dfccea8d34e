import AFNetworking

// The declarations of GLib, GdkPixbuf, GTK 4 and WebKitGTK that the examples use, as Swift's importer sees those of C:
// an opaque structure is an `OpaquePointer`. Objects here are nothing but the arguments that they were made of.

typealias gpointer = UnsafeMutableRawPointer
typealias gboolean = Int32
typealias guint = UInt32
typealias gsize = UInt
typealias GSourceFunc = @convention(c) (gpointer?) -> gboolean

struct GError {}
struct GdkPixbufLoader {
  var bytes: [UInt8] = []
}
struct GtkWidget {}
struct GtkButton {}
struct WebKitWebView {}

/// The calls of the C functions.
final class GTKCalls: @unchecked Sendable {
  static let shared = GTKCalls()
  private let lock = NSLock()
  private var names: [String] = []
  private var sources: [(GSourceFunc, gpointer?)] = []

  var lines: [String] { lock.withLock { names } }

  func note(_ line: String) { lock.withLock { names.append(line) } }

  func add(_ function: @escaping GSourceFunc, _ data: gpointer?) { lock.withLock { sources.append((function, data)) } }

  /// Runs the main loop until there is nothing to do.
  func iterate() {
    while let (function, data) = lock.withLock({ sources.isEmpty ? nil : sources.removeFirst() }) { _ = function(data) }
  }
}

/// A pointer that stands for an object.
func gtkObject(_ number: Int) -> OpaquePointer {
  OpaquePointer(bitPattern: number * 16) ?? OpaquePointer(UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1))
}

func g_idle_add(_ function: GSourceFunc!, _ data: gpointer!) -> guint {
  if let function { GTKCalls.shared.add(function, data) }
  return 1
}

func g_timeout_add(_ interval: guint, _ function: GSourceFunc!, _ data: gpointer!) -> guint {
  if let function { GTKCalls.shared.add(function, data) }
  return interval
}

func g_object_unref(_ object: gpointer!) {}
func g_bytes_new(_ data: UnsafeRawPointer!, _ size: gsize) -> OpaquePointer! { gtkObject(Int(size)) }
func g_bytes_unref(_ bytes: OpaquePointer!) {}

func gdk_pixbuf_loader_new() -> UnsafeMutablePointer<GdkPixbufLoader>! { nil }

func gdk_pixbuf_loader_write(
  _ loader: UnsafeMutablePointer<GdkPixbufLoader>!, _ buf: UnsafePointer<UInt8>!, _ count: gsize,
  _ error: UnsafeMutablePointer<UnsafeMutablePointer<GError>?>!
) -> gboolean { 1 }

func gdk_pixbuf_loader_close(
  _ loader: UnsafeMutablePointer<GdkPixbufLoader>!, _ error: UnsafeMutablePointer<UnsafeMutablePointer<GError>?>!
) -> gboolean { 1 }

func gdk_pixbuf_loader_get_pixbuf(_ loader: UnsafeMutablePointer<GdkPixbufLoader>!) -> OpaquePointer! { gtkObject(1) }
func gdk_pixbuf_get_byte_length(_ pixbuf: OpaquePointer!) -> gsize { 800 }
func gdk_texture_new_for_pixbuf(_ pixbuf: OpaquePointer!) -> OpaquePointer! { gtkObject(2) }

func gtk_picture_set_paintable(_ picture: OpaquePointer!, _ paintable: OpaquePointer!) {
  GTKCalls.shared.note("paintable \(Int(bitPattern: picture)) \(Int(bitPattern: paintable))")
}

func gtk_button_set_child(_ button: UnsafeMutablePointer<GtkButton>!, _ child: UnsafeMutablePointer<GtkWidget>!) {}
func gtk_spinner_start(_ spinner: OpaquePointer!) { GTKCalls.shared.note("start \(Int(bitPattern: spinner))") }
func gtk_spinner_stop(_ spinner: OpaquePointer!) { GTKCalls.shared.note("stop \(Int(bitPattern: spinner))") }

func gtk_progress_bar_set_fraction(_ bar: OpaquePointer!, _ fraction: Double) {
  GTKCalls.shared.note("fraction \(Int(bitPattern: bar)) \(fraction)")
}

func webkit_web_view_load_bytes(
  _ view: UnsafeMutablePointer<WebKitWebView>!, _ bytes: OpaquePointer!, _ mimeType: UnsafePointer<CChar>!,
  _ encoding: UnsafePointer<CChar>!, _ baseURI: UnsafePointer<CChar>!
) { GTKCalls.shared.note("bytes \(String(cString: mimeType)) \(String(cString: encoding))") }
