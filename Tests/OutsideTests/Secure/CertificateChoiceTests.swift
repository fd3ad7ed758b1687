import Harness
import Testing

extension Outside {
    @Suite("Selection of the server certificate")
    struct CertificateChoiceTests {
        private static let leaves = Result {
            let authority = try SecureStage.authority.get()
            return try [
                authority.leaf("choice-first", hosts: ["first.example"]),
                authority.leaf("choice-second", hosts: ["second.example"]),
                authority.leaf("choice-wild", hosts: ["*.wild.example"]),
                authority.leaf("choice-exact", hosts: ["exact.wild.example"]),
                authority.leaf("choice-rsa", hosts: ["second.example"], key: .rsa),
            ]
        }

        @Test(
            "The server name selects, exact before wildcard; other names get the first certificate",
            arguments: [
                ("first.example", "choice-first"), ("second.example", "choice-second"),
                ("SECOND.example", "choice-second"), ("a.wild.example", "choice-wild"),
                ("exact.wild.example", "choice-exact"), ("a.b.wild.example", "choice-first"),
                ("wild.example", "choice-first"), ("third.example", "choice-first"),
            ])
        func byName(name: String, expected: String) throws {
            let stage = try SecureStage(certificates: try Self.leaves.get())
            for version in ["-tls1_2", "-tls1_3"] {
                let client = try stage.openssl(version, name: name)
                #expect(client.subject == expected && client.isAnswered, "\(client)")
                let isRight = expected != "choice-first" || name == "first.example"
                #expect(client.isVerified == isRight, "\(client)")
            }
            let none = try stage.openssl("-noservername", name: name)
            #expect(none.subject == "choice-first", "\(none)")
        }

        @Test("A client without ECDSA gets the certificate with an RSA key")
        func byKey() throws {
            let stage = try SecureStage(certificates: try Self.leaves.get())
            let client = try stage.openssl(
                "-tls1_3", "-sigalgs", "rsa_pss_rsae_sha256", name: "second.example")
            #expect(client.subject == "choice-rsa" && client.isVerified, "\(client)")
            let old = try stage.openssl(
                "-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256", name: "second.example")
            #expect(old.subject == "choice-rsa" && old.isVerified, "\(old)")
        }

        @Test(
            "An OCSP response beside the certificate is stapled",
            arguments: ["-tls1_2", "-tls1_3"])
        func stapled(version: String) throws {
            let authority = try SecureStage.authority.get()
            let leaf = try authority.leaf("stapled\(version)", hosts: [SecureStage.images])
            let stage = try SecureStage(certificates: [leaf])
            let without = try stage.openssl(version, "-status")
            #expect(without.output.contains("OCSP response: no response sent"), "\(without)")
            try authority.writeOCSPResponse(for: leaf)
            stage.node.hangUp()
            expectSoon(20) { stage.node.lineCount(containing: "settings reloaded") == 1 }
            let with = try stage.openssl(version, "-status")
            #expect(with.output.contains("OCSP Response Status: successful"), "\(with)")
            #expect(with.output.contains("Cert Status: good") && with.isAnswered, "\(with)")
            // A client that does not request it does not get it.
            #expect(try !stage.openssl(version).output.contains("OCSP Response Status"))
            let curl = try stage.curl(
                "--cert-status", stage.url("/healthz", host: SecureStage.images))
            #expect(curl.exitStatus == 0 && curl.status == 200, "\(curl)")
        }
    }
}
