import Certificates
import Foundation
import Harness
import Testing

extension Outside {
    /// Origins over TLS with a third-party server.
    @Suite(
        "Secure origins", .serialized,
        .enabled(if: SecureOrigin.python != nil, "Python is not installed"))
    struct SecureOriginTests {
        /// A fault of an origin's TLS, and the expected words in the log.
        struct Fault: CustomTestStringConvertible, Sendable {
            let name: String
            let certificate: TestCertificate
            var isOld = false
            let why: String

            var testDescription: String { name }
        }

        private static let authority = TestCertificate("Outside authority", isIssuer: true)
        private static let names = "IP:127.0.0.1"
        private static let good = TestCertificate("good", names: names, issuer: authority)

        static let faults = [
            Fault(
                name: "expired",
                certificate: TestCertificate(
                    "e", names: names, validity: .past, issuer: authority),
                why: "The origin's certificate expired on "),
            Fault(
                name: "not yet valid",
                certificate: TestCertificate(
                    "n", names: names, validity: .future, issuer: authority),
                why: "The origin's certificate is not valid before "),
            Fault(
                name: "self-signed", certificate: TestCertificate("s", names: names),
                why: "The origin's certificate is self-signed and not trusted"),
            Fault(
                name: "of a stranger",
                certificate: TestCertificate(
                    "u", names: names, issuer: TestCertificate("Stranger", isIssuer: true)),
                why: "The origin's certificate has no trusted issuer"),
            Fault(
                name: "for another host",
                certificate: TestCertificate("w", names: "DNS:b.example", issuer: authority),
                why: "The origin's certificate is not for 127.0.0.1; it is for b.example"),
            Fault(
                name: "old", certificate: good, isOld: true,
                why: "The origin supports no TLS version that is allowed here"),
        ]

        /// Calls the body with a file of the authority's certificate and a node that trusts it.
        private func withNode(
            _ flags: [String] = [], _ body: (NodeProcess) throws -> Void
        ) throws {
            let folder = try TemporaryFolder()
            let file = folder.appending(path: "ca.pem")
            try Data(Self.authority.pem).write(to: file)
            try body(try NodeProcess(["--origin-ca", file.path] + flags))
        }

        @Test("An image arrives complete over TLS, and the connection is kept")
        func fetched() throws {
            let image = TestImage.png(width: 4, height: 4)
            let origin = try SecureOrigin(showing: Self.good, image: image)
            try withNode { node in
                for number in 0..<20 {
                    let url = "https://127.0.0.1:\(origin.port)/\(number).png"
                    let response = try node.get(ImageRequestTarget.forURL(url), expecting: image)
                    #expect(response.matches(image), "\(response)")
                }
                #expect(node.metric("nuthatch_origin_fetches_total{result=\"ok\"}") == 20)
            }
        }

        @Test("A fault of an origin's TLS gives 502 and a log line", arguments: faults)
        func refused(_ fault: Fault) throws {
            let origin = try SecureOrigin(
                showing: fault.certificate, image: TestImage.png(width: 4, height: 4),
                isOld: fault.isOld)
            try withNode { node in
                let url = "https://127.0.0.1:\(origin.port)/a.png"
                for _ in 0..<3 {
                    let response = try node.get(ImageRequestTarget.forURL(url))
                    expectProblem(response, 502, fault.name)
                    #expect(!response.text.contains("127.0.0.1"), "\(response)")
                }
                #expect(
                    node.lineCount(containing: "connection to an origin failed", fault.why) == 1)
            }
        }

        @Test("A permitted stale copy is served while the origin's TLS fails", arguments: faults)
        func standsIn(_ fault: Fault) throws {
            let image = TestImage.png(width: 4, height: 4)
            let good = try SecureOrigin(
                showing: Self.good, image: image,
                field: "Cache-Control: max-age=0, stale-if-error=600")
            let port = good.port
            try withNode(["--site", "a.example=https://127.0.0.1:\(port)"]) { node in
                let first = try node.get("/a.png", host: "a.example", expecting: image)
                #expect(first.matches(image), "\(first)")
                good.stop()
                let bad = try SecureOrigin(
                    showing: fault.certificate, image: image, port: port, isOld: fault.isOld)
                let stale = try node.get("/a.png", host: "a.example", expecting: image)
                #expect(stale.matches(image), "\(stale)")
                let other = try node.get("/b.png", host: "a.example")
                expectProblem(other, 502, fault.name)
                withExtendedLifetime(bad) {}
            }
        }

        @Test("A site trusts only its own issuers or keys; an unusable file changes nothing")
        func ofSite() throws {
            let image = TestImage.png(width: 4, height: 4)
            let alone = TestCertificate("alone", names: Self.names)
            let origin = try SecureOrigin(showing: alone, image: image)
            let folder = try TemporaryFolder()
            let (file, issuers) = (
                folder.appending(path: "n.yaml"), folder.appending(path: "i.pem")
            )
            func write(_ option: String) throws {
                let text = """
                    sites:
                      a.example:
                        origin: https://127.0.0.1:\(origin.port)
                        \(option)

                    """
                try text.write(to: file, atomically: true, encoding: .utf8)
            }
            try write("origin-pins: [\(Self.good.pin)]")
            let node = try NodeProcess(["--config", file.path])
            expectProblem(try node.get("/1.png", host: "a.example"), 502)
            try write("origin-pins: [\(alone.pin)]")
            node.hangUp()
            expectSoon(20) { node.lineCount(containing: "settings reloaded") == 1 }
            #expect(try node.get("/2.png", host: "a.example", expecting: image).matches(image))
            try "no certificate".write(to: issuers, atomically: true, encoding: .utf8)
            try write("origin-ca: \(issuers.path)")
            node.hangUp()
            expectSoon(20) { node.lineCount(containing: "settings not reloaded") == 1 }
            #expect(try node.get("/3.png", host: "a.example", expecting: image).matches(image))
            try Data(Self.authority.pem).write(to: issuers)
            node.hangUp()
            expectSoon(20) { node.lineCount(containing: "settings reloaded") == 2 }
            expectProblem(try node.get("/4.png", host: "a.example"), 502)
            // The same name with other content.
            try Data(alone.pem).write(to: issuers)
            node.hangUp()
            expectSoon(20) { node.lineCount(containing: "settings reloaded") == 3 }
            #expect(try node.get("/5.png", host: "a.example", expecting: image).matches(image))
        }
    }
}
