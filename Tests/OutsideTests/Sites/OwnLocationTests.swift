import Foundation
import Harness
import Testing

extension Outside {
    /// The location that an origin names, and where its clients are redirected.
    @Suite("Redirects of an origin to itself")
    struct OwnLocationTests {
        private let origin: ScriptedOrigin

        init() throws {
            origin = try ScriptedOrigin()
            let authority = "127.0.0.1:\(origin.port)"
            origin.onAnyOtherPath { request in
                guard request.target == "/public/old" else { return .text("it", fields: [lasting]) }
                let scheme = request.fields["X-Forwarded-Proto"] ?? "http"
                return .text(
                    "elsewhere", status: "302 Found",
                    fields: [lasting, "Location: \(scheme)://\(authority)/public/new?a=b"])
            }
        }

        @Test("One stored redirect is right for all hosts and schemes of its site")
        func hosts() throws {
            let node = try NodeProcess([
                "--site", "*=\(origin.url("/public"))", "--forwarded-from", "127.0.0.0/8",
            ])
            for proto in ["http", "https"] {
                for host in ["a.example", "b.example:8443"] {
                    let fields = ["X-Forwarded-Proto: \(proto)"]
                    for turn in 1...2 {
                        let response = try node.get("/old", host: host, fields: fields)
                        #expect(
                            response.status == 302 && response.isHit == (turn == 2), "\(response)")
                        #expect(response["Location"] == "/new?a=b", "\(response)")
                    }
                    #expect(try node.get("/new?a=b", host: host, fields: fields).text == "it")
                    #expect(origin.log.last?.target == "/public/new?a=b")
                }
            }
        }
    }
}
