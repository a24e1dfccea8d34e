import AFNetworking
import LarkspurTestServer
import Testing

// The examples of Images.md, Views.md and ActivityIndicator.md. They are compiled with the declarations of
// GTKNames.swift, and those that do not need GTK also run.

// MARK: - ActivityIndicator.md

private final class Window: @unchecked Sendable {
  var showsActivity = false
}

private func showActivity(in window: Window) {
  let manager = AFNetworkActivityIndicatorManager.shared()
  manager.setNetworkingActivityActionWith { isVisible in window.showsActivity = isVisible }
  manager.isEnabled = true
}

// MARK: - Images.md

func makeDownloader() -> AFImageDownloader {
  let downloader = AFImageDownloader()
  let serializer = AFImageResponseSerializer()
  serializer.imageDecoder = TextureDecoder()
  downloader.sessionManager.responseSerializer = serializer
  return downloader
}

final class Texture: AFDecodedImage, @unchecked Sendable {
  let pointer: OpaquePointer
  let decodedByteCount: UInt64

  init?(pixbuf: OpaquePointer?) {
    guard let pixbuf, let texture = gdk_texture_new_for_pixbuf(pixbuf) else { return nil }
    pointer = texture
    decodedByteCount = UInt64(gdk_pixbuf_get_byte_length(pixbuf))
  }

  deinit { g_object_unref(UnsafeMutableRawPointer(pointer)) }
}

struct TextureDecoder: AFImageDecoding {
  func image(from data: Data, response: URLResponse?, scale: CGFloat, inflates: Bool) throws -> Any? {
    let loader = gdk_pixbuf_loader_new()
    defer { g_object_unref(UnsafeMutableRawPointer(loader)) }
    let isWritten = data.withUnsafeBytes { bytes in
      gdk_pixbuf_loader_write(loader, bytes.bindMemory(to: UInt8.self).baseAddress, gsize(bytes.count), nil)
    }
    guard gdk_pixbuf_loader_close(loader, nil) != 0, isWritten != 0 else { return nil }
    return Texture(pixbuf: gdk_pixbuf_loader_get_pixbuf(loader))
  }
}

private final class Preview: @unchecked Sendable {
  var fraction = 0.0
  var picture: (any AFDecodedImage)?
  var message = ""
}

private func preview(_ request: URLRequest, by downloader: AFImageDownloader, in view: Preview) {
  var options = AFImageDownloadOptions()
  options.priority = .high
  options.progress = { progress in view.fraction = progress.fractionCompleted }
  options.partialImage = { image in view.picture = image }
  downloader.downloadImage(for: request, options: options) { _, _, image in
    view.picture = image
  } failure: { _, _, error in
    view.message = error.localizedDescription
  }
}

// MARK: - Views.md

final class Work {
  let body: @Sendable () -> Void
  init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}

func useMainLoopOfGTK() {
  AFViewScheduler.shared = AFViewScheduler { body in
    _ = g_idle_add(
      { data in
        if let data { Unmanaged<Work>.fromOpaque(data).takeRetainedValue().body() }
        return 0
      }, Unmanaged.passRetained(Work(body)).toOpaque())
  }
}

func serveMainQueueInGTK() {
  _ = g_timeout_add(
    20,
    { _ in
      RunLoop.main.run(until: Date())
      return 1
    }, nil)
}

final class PictureView: AFImageTarget {
  let widget: OpaquePointer
  let imageSlot = AFImageSlot()

  var image: Texture? {
    didSet { gtk_picture_set_paintable(widget, image?.pointer) }
  }

  init(_ widget: OpaquePointer) { self.widget = widget }
}

func show(_ url: URL, in view: PictureView, placeholder: Texture) {
  view.setImage(with: url, placeholderImage: placeholder)
}

final class ButtonView: AFButtonTarget {
  enum ControlState { case normal, active }

  let picture: OpaquePointer
  let imageSlots = AFButtonImageSlots()
  var state = ControlState.normal { didSet { gtk_picture_set_paintable(picture, images[state]?.pointer) } }
  private var images: [ControlState: Texture] = [:]

  init(_ button: UnsafeMutablePointer<GtkButton>, _ picture: OpaquePointer) {
    self.picture = picture
    gtk_button_set_child(button, UnsafeMutablePointer(picture))
  }

  func setImage(_ image: Texture?, for state: ControlState) {
    images[state] = image
    if state == self.state { gtk_picture_set_paintable(picture, image?.pointer) }
  }

  func setBackgroundImage(_ image: Texture?, for state: ControlState) {}
}

final class SpinnerView: AFActivityTarget, AFRefreshTarget {
  let widget: OpaquePointer
  let taskSlot = AFTaskSlot()

  init(_ widget: OpaquePointer) { self.widget = widget }

  func startAnimating() { gtk_spinner_start(widget) }
  func stopAnimating() { gtk_spinner_stop(widget) }
  func beginRefreshing() { startAnimating() }
  func endRefreshing() { stopAnimating() }
}

final class ProgressBarView: AFProgressTarget {
  let widget: OpaquePointer
  let taskSlot = AFTaskSlot()

  init(_ widget: OpaquePointer) { self.widget = widget }

  func setProgress(_ progress: Float, animated: Bool) {
    gtk_progress_bar_set_fraction(widget, Double(progress))
  }
}

func follow(_ task: URLSessionDownloadTask, _ bar: ProgressBarView, _ spinner: SpinnerView) {
  bar.setProgressWithDownloadProgressOf(task, animated: true)
  spinner.setAnimatingWithStateOf(task)
}

final class DocumentView: AFDocumentTarget {
  let widget: UnsafeMutablePointer<WebKitWebView>
  let documentSlot = AFDocumentSlot()

  init(_ widget: UnsafeMutablePointer<WebKitWebView>) { self.widget = widget }

  func load(_ data: Data, mimeType: String, characterEncodingName: String, baseURL: URL) {
    let bytes = data.withUnsafeBytes { g_bytes_new($0.baseAddress, gsize($0.count)) }
    webkit_web_view_load_bytes(widget, bytes, mimeType, characterEncodingName, baseURL.absoluteString)
    g_bytes_unref(bytes)
  }
}

func open(_ request: URLRequest, in view: DocumentView) {
  view.load(request) { progress in
    print(progress.fractionCompleted)
  } success: { response, html in
    html.replacing("http://", with: "https://")
  } failure: { error in
    print(error.localizedDescription)
  }
}

// MARK: - Runs

@Suite(.timeLimit(.minutes(1))) struct ViewExampleTests {
  let fixture: ManagerFixture

  init() throws { fixture = try ManagerFixture() }

  @Test func pictures() async throws {
    let image = try TextureDecoder().image(from: PNG.head(20, 10), response: nil, scale: 1, inflates: true)
    let texture = try #require(image as? Texture)
    #expect(texture.decodedByteCount == 800)
    let downloader = makeDownloader()
    fixture.server.route("GET", "/image") { _ in
      TestServer.Response(fields: ["Content-Type": "image/png"], body: .bytes(Array(PNG.head(20, 10))))
    }
    #expect(try await downloader.image(for: try fixture.request("/image")) is Texture)
    let view = PictureView(gtkObject(77))
    view.image = texture
    #expect(GTKCalls.shared.lines.contains("paintable 1232 32"))
    let button = ButtonView(UnsafeMutablePointer(gtkObject(78)), gtkObject(79))
    button.setImage(texture, for: .active)
    button.state = .active
    #expect(GTKCalls.shared.lines.contains("paintable 1264 32"))
  }

  @Test func tasks() async throws {
    let (bar, spinner) = (ProgressBarView(gtkObject(80)), SpinnerView(gtkObject(81)))
    let task = fixture.manager.downloadTask(with: try fixture.request("/bytes/10"), completionHandler: nil)
    follow(task, bar, spinner)
    #expect(GTKCalls.shared.lines.contains("fraction 1280 0.0") && GTKCalls.shared.lines.contains("stop 1296"))
    task.cancel()
  }

  @Test func documents() throws {
    let url = try fixture.url("/")
    DocumentView(UnsafeMutablePointer(gtkObject(82))).load(
      Data([1]), mimeType: "text/x-example", characterEncodingName: "utf-8", baseURL: url)
    #expect(GTKCalls.shared.lines.contains("bytes text/x-example utf-8"))
  }
}
