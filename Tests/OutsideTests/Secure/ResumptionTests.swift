import Foundation
import Harness
import Testing

extension Outside {
    @Suite("TLS sessions are resumed")
    struct ResumptionTests {
        static let resumed = "nuthatch_tls_handshakes_total{outcome=\"resumed\"}"
        static let full = "nuthatch_tls_handshakes_total{outcome=\"full\"}"

        @Test(
            "openssl resumes a session, also after the certificates were reloaded",
            arguments: ["1_2", "1_3"])
        func openssl(version: String) throws {
            let stage = try SecureStage()
            let folder = try TemporaryFolder()
            let file = folder.appending(path: "session").path
            let first = try stage.openssl("-tls\(version)", "-sess_out", file)
            #expect(first.isVerified && first.isAnswered && !first.isResumed, "\(first)")
            let second = try stage.openssl("-tls\(version)", "-sess_in", file)
            #expect(second.isResumed && second.isAnswered, "\(second)")
            stage.node.hangUp()
            expectSoon(20) { stage.node.lineCount(containing: "settings reloaded") == 1 }
            let third = try stage.openssl("-tls\(version)", "-sess_in", file)
            #expect(third.isResumed && third.isAnswered, "\(third)")
            stage.waitForFigure(Self.resumed, 2)
            stage.waitForFigure(Self.full, 1)
        }

        @Test("A session of another node is not resumed, and the request succeeds")
        func foreign() throws {
            let (one, other) = (try SecureStage(), try SecureStage())
            let folder = try TemporaryFolder()
            let file = folder.appending(path: "session").path
            #expect(try one.openssl("-sess_out", file).isAnswered)
            let second = try other.openssl("-sess_in", file)
            #expect(!second.isResumed && second.isVerified && second.isAnswered, "\(second)")
        }

        @Test("curl resumes on its next connection")
        func curl() throws {
            let stage = try SecureStage()
            let url = stage.url("/healthz", host: SecureStage.images)
            let response = try stage.curl("--http1.1", "--header", "Connection: close", url, url)
            #expect(response.exitStatus == 0, "\(response)")
            stage.waitForFigure(Self.resumed, 1)
        }
    }
}
