import Certificates
import Foundation
import Harness

/// Python's TLS server, which serves the same image on every path.
final class SecureOrigin {
    struct NotReady: Error, CustomStringConvertible {
        let description: String
    }

    let port: Int
    private let program: Program
    private let folder: TemporaryFolder

    /// The path of Python; `nil` if it is not installed.
    static var python: String? { try? Program.find("python3") }

    /// Serves `image` with `field` on `port` or a free port; `isOld` permits only TLS 1.0 and 1.1.
    init(
        showing certificate: TestCertificate, image: TestImage, field: String = "X: y",
        port: Int? = nil, isOld: Bool = false
    ) throws {
        self.port = try port ?? ReservedPort.forProcess()
        folder = try TemporaryFolder()
        let (chain, key, body) = ("chain.pem", "key.pem", "image.png")
        try Data(certificate.chainPEM).write(to: folder.appending(path: chain))
        try Data(certificate.keyPEM).write(to: folder.appending(path: key))
        try Data(image.bytes).write(to: folder.appending(path: body))
        let name = field.prefix { $0 != ":" }
        program = try Program(
            try Program.find("python3"),
            [
                "-c", Self.text, folder.path, "\(self.port)", isOld ? "old" : "new", String(name),
                String(field.dropFirst(name.count + 2)),
            ])
        let listening = Deadline.seconds(20).waitUntil { [program] in
            !program.isRunning || String(decoding: program.output, as: UTF8.self).contains("ready")
        }
        guard listening, program.isRunning else {
            throw NotReady(description: "the origin did not come up: \(program.errors)")
        }
    }

    deinit { stop() }

    /// Stops the server and all its connections.
    func stop() {
        program.kill()
        _ = program.wait(seconds: 10)
    }

    private static let text = """
        import http.server, ssl, sys
        folder, port, age, name, value = sys.argv[1:]
        image = open(folder + "/image.png", "rb").read()
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "image/png")
                self.send_header("Content-Length", str(len(image)))
                self.send_header(name, value)
                self.end_headers()
                self.wfile.write(image)
            def log_message(self, *words):
                pass
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder + "/chain.pem", folder + "/key.pem")
        if age == "old":
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
        server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False)
        print("ready", flush=True)
        server.serve_forever()
        """
}
