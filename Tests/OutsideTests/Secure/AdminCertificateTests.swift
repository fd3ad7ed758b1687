import Foundation
import Harness
import Testing

extension Outside {
    /// The admin port over TLS, which serves HTTP/1.1 only.
    @Suite("Client certificates for operators")
    struct AdminCertificateTests {
        private static let pages = ["/metrics", "/healthz", "/readyz", "/admin/v1/origins"]

        private func admin(_ stage: SecureStage, _ page: String) -> String {
            "https://\(SecureStage.images):\(stage.node.adminPort)\(page)"
        }

        @Test("With client-ca the admin port requires a client certificate of that authority")
        func clientCA() throws {
            let operators = try TestAuthority("Operators")
            let strangers = try TestAuthority("Strangers")
            let (alice, mallory) = (try operators.leaf("alice"), try strangers.leaf("mallory"))
            let expired = try operators.leaf("bob", years: 2020..<2021)
            let stage = try SecureStage("--client-ca", operators.file)
            for version in ["--http1.1", "--http2"] {
                for page in Self.pages {
                    let response = try stage.curl(
                        version, "--cert", alice.certificate, "--key", alice.key,
                        admin(stage, page))
                    #expect(
                        response.exitStatus == 0 && response.status == 200, "\(page): \(response)")
                    #expect(response.version == "1.1")
                }
            }
            let refused = try [
                stage.curl(admin(stage, "/metrics")),
                stage.curl(
                    "--cert", mallory.certificate, "--key", mallory.key, admin(stage, "/metrics")),
                stage.curl(
                    "--cert", expired.certificate, "--key", expired.key, admin(stage, "/metrics")),
                stage.curl("http://127.0.0.1:\(stage.node.adminPort)/metrics"),
            ]
            for response in refused {
                #expect(
                    response.exitStatus != 0 && response.status == 0 && response.body.isEmpty,
                    "\(response)")
            }
            // The data port requests no client certificate.
            let client = try stage.curl(stage.url("/healthz", host: SecureStage.images))
            #expect(client.status == 200)
            let asked = try stage.openssl(port: stage.node.securePort)
            #expect(asked.output.contains("No client certificate CA names sent"), "\(asked)")
        }

        @Test("A TLS session of the data port does not authenticate on the admin port")
        func foreignSession() throws {
            let operators = try TestAuthority("Operators")
            let stage = try SecureStage("--client-ca", operators.file)
            let folder = try TemporaryFolder()
            let file = folder.appending(path: "session").path
            for version in ["-tls1_2", "-tls1_3"] {
                #expect(try stage.openssl(version, "-sess_out", file).isAnswered)
                let admin = try stage.openssl(
                    version, "-sess_in", file, port: stage.node.adminPort)
                #expect(!admin.isAnswered && !admin.isResumed, "\(admin)")
            }
        }

        @Test("Without client-ca the admin port uses clear text only")
        func clearText() throws {
            let stage = try SecureStage()
            let admin = "http://127.0.0.1:\(stage.node.adminPort)"
            for page in Self.pages {
                let response = try stage.curl("--http2", admin + page)
                #expect(response.exitStatus == 0 && response.status == 200, "\(page): \(response)")
            }
            let image = TestImage.generated(.jpeg, byteCount: 10_000, seed: 640)
            let target = ImageRequestTarget.forURL(stage.origin.url(stage.origin.serve(image)))
            for page in Self.pages + [target] {
                let response = try stage.curl("--http2-prior-knowledge", admin + page)
                #expect(response.exitStatus != 0 && response.status != 200, "\(page): \(response)")
            }
            #expect(try stage.curl(admin + target).status == 404)
            for way in Way.allCases {
                let response = try way.ask(stage, "/metrics", host: SecureStage.images)
                #expect(response.status == 404, "\(way): \(response)")
            }
            #expect(stage.origin.log.isEmpty)
        }
    }
}
