import COpenSSL
import Certificates
import Ground
import Testing
import Wire

@Suite("Verification of an origin's certificate") struct TrustTests {
    /// The failure of a client that trusts `authority` with `certificate`, or `nil`.
    private func failure(
        _ certificate: TestCertificate, name: TLSServerName = .name("a.example"),
        change: (inout TLSClientSettings) -> Void = { _ in }
    ) throws -> TLSFailure? {
        let pair = try pair(certificate, name: name, client: change).run()
        #expect((pair.client.failure == nil) == (pair.client.parameters != nil))
        if pair.client.failure != nil {
            #expect(pair.client.failure?.side == .origin)
            #expect(pair.client.failure?.mayRetry == false)
            // The origin receives an alert, too.
            guard case .alert? = pair.server.failure?.cause else {
                Issue.record("\(String(describing: pair.server.failure))")
                return nil
            }
        }
        return pair.client.failure
    }

    private func certificate(
        _ names: String, validity: TestCertificate.Validity = .init()
    ) -> TestCertificate {
        TestCertificate("a.example", names: names, validity: validity, issuer: .authority)
    }

    @Test(
        "The certificate must name the host",
        arguments: [
            ("DNS:a.example", "a.example", true),
            ("DNS:A.EXAMPLE", "a.example", true),
            ("DNS:b.example,DNS:a.example", "a.example", true),
            ("DNS:*.example", "a.example", false),
            ("DNS:*.a.example", "b.a.example", true),
            ("DNS:*.a.example", "a.example", false),
            ("DNS:*.a.example", "c.b.a.example", false),
            ("DNS:a*.example", "a.example", false),
            ("DNS:*a.example", "aa.example", false),
            ("DNS:a.*", "a.example", false),
            ("DNS:*", "localhost", false),
            ("DNS:b.example", "a.example", false),
            ("DNS:a.example.evil.test", "a.example", false),
            ("email:a.example", "a.example", false),
            ("IP:127.0.0.1", "127.0.0.1", true),
            ("IP:2001:db8::1", "2001:db8::1", true),
            ("IP:127.0.0.2", "127.0.0.1", false),
            ("DNS:127.0.0.1", "127.0.0.1", false),
            ("IP:127.0.0.1", "a.example", false),
        ])
    func host(names: String, asked: String, isRight: Bool) throws {
        let name = IPAddress(asked).map(TLSServerName.address) ?? .name(asked)
        let failure = try failure(certificate(names), name: name)
        if isRight {
            #expect(failure == nil)
        } else {
            guard case .wrongHost(name, _)? = failure?.cause else {
                Issue.record("\(String(describing: failure))")
                return
            }
        }
    }

    @Test("The subject's CN does not name a host")
    func commonName() throws {
        let bare = TestCertificate("a.example", issuer: .authority)
        let failure = try failure(bare)
        #expect(failure?.cause == .wrongHost(.name("a.example"), names: []))
        #expect(
            failure?.message == "The origin's certificate is not for a.example; it is for no host."
        )
    }

    @Test("A wrong host is reported with the right names, at most eight")
    func names() throws {
        let failure = try failure(certificate("DNS:*.b.example,IP:::1,DNS:c.example"))
        #expect(
            failure?.message
                == "The origin's certificate is not for a.example; it is for c.example, "
                + "*.b.example, ::1.")
        let many = (0..<20).map { "DNS:\($0).c.example" }.joined(separator: ",")
        guard case .wrongHost(_, let names)? = try self.failure(certificate(many))?.cause else {
            Issue.record("no failure")
            return
        }
        #expect(names.count == 8)
    }

    @Test("SNI has names only, and no addresses")
    func serverName() throws {
        for (name, sent) in [
            (TLSServerName.name("a.example"), "a.example"), (.address(.v4(0x7F00_0001)), nil),
        ] {
            let pair = try pair(certificate("DNS:a.example,IP:127.0.0.1"), name: name).run()
            let parameters = try #require(pair.server.parameters)
            #expect(parameters.serverName == sent)
        }
    }

    @Test("A certificate outside its validity is refused with the date")
    func validity() throws {
        let past = try failure(certificate("DNS:a.example", validity: .past))
        guard case .expired(_, depth: 0)? = past?.cause else {
            Issue.record("\(String(describing: past))")
            return
        }
        let pattern = /(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} 20\d\d [0-9:]{8} GMT\./
        #expect(
            past?.message.hasPrefix("The origin's certificate expired on ") == true
                && past?.message.firstMatch(of: pattern) != nil)
        let future = try failure(certificate("DNS:a.example", validity: .future))
        guard case .notYetValid(_, depth: 0)? = future?.cause else {
            Issue.record("\(String(describing: future))")
            return
        }
        #expect(future?.message.contains("is not valid before") == true)
        #expect(future?.message.firstMatch(of: pattern) != nil)
    }

    @Test("An issuer outside its validity is reported as such")
    func issuerExpired() throws {
        let middle = TestCertificate(
            "middle", validity: .past, isIssuer: true, issuer: .authority)
        let leaf = TestCertificate("leaf", names: "DNS:a.example", issuer: middle)
        let failure = try failure(leaf)
        #expect(
            failure?.message.hasPrefix("An issuer of the origin's certificate expired on ")
                == true)
    }

    @Test("A certificate without a trusted issuer is refused")
    func issuer() throws {
        let selfSigned = TestCertificate("a", names: "DNS:a.example")
        let failure = try failure(selfSigned)
        #expect(failure?.cause == .selfSigned)
        #expect(
            failure?.message == "The origin's certificate is self-signed and not trusted.")
        let stranger = TestCertificate("Stranger", isIssuer: true)
        let leaf = TestCertificate("a", names: "DNS:a.example", issuer: stranger)
        #expect(try self.failure(leaf)?.cause == .unknownIssuer("CN=Stranger"))
        #expect(
            try self.failure(leaf)?.message
                == "The origin's certificate has no trusted issuer; the last issuer in its "
                + "chain is “CN=Stranger”.")
        // A forged issuer with the same name.
        let forged = TestCertificate("Test authority", isIssuer: true)
        let forgedLeaf = TestCertificate("a", names: "DNS:a.example", issuer: forged)
        #expect(try self.failure(forgedLeaf) != nil)
        // An issuer that may not issue.
        let noIssuer = TestCertificate("b", names: "DNS:b.example", issuer: .authority)
        let leafOfLeaf = TestCertificate("a", names: "DNS:a.example", issuer: noIssuer)
        #expect(try self.failure(leafOfLeaf) != nil)
    }

    @Test("An operator's own issuer is trusted for its origins, root or not")
    func ownIssuer() throws {
        let selfSigned = TestCertificate("a", names: "DNS:a.example")
        #expect(try failure(selfSigned) { $0.issuersPEM = selfSigned.pem } == nil)
        let stranger = TestCertificate("Stranger", isIssuer: true)
        let middle = TestCertificate("middle", isIssuer: true, issuer: stranger)
        let leaf = TestCertificate("leaf", names: "DNS:a.example", issuer: middle)
        #expect(try failure(leaf) { $0.issuersPEM = middle.pem } == nil)
        #expect(try failure(leaf) { $0.issuersPEM = stranger.pem } == nil)
        #expect(try failure(.exampleLeaf) { $0.issuersPEM = stranger.pem } != nil)
    }

    @Test("The tests' authority is trusted only if configured, and some trust is required")
    func system() throws {
        #expect(try failure(.exampleLeaf) { $0 = TLSClientSettings(trustsSystem: true) } != nil)
        let issuers = TestCertificate.authority.pem
        #expect(try failure(.exampleLeaf) { $0 = TLSClientSettings(issuersPEM: issuers) } == nil)
        #expect(throws: TLSSetupError.noTrust) {
            try TLSClientContext(TLSClientSettings(trustsSystem: false))
        }
        #expect(throws: TLSSetupError.issuers(reason: "the file has no PEM certificate")) {
            try TLSClientContext(TLSClientSettings(issuersPEM: [1, 2, 3]))
        }
    }

    @Test("An alert of the origin is reported by its name")
    func alert() throws {
        let pair = try pair()
        _ = pair.client.take()
        pair.client.give([21, 3, 3, 0, 2, 2, 112])
        #expect(pair.client.failure?.cause == .alert(112))
        #expect(
            pair.client.failure?.message
                == "The origin refused the connection with the TLS alert unrecognized_name.")
        let other = try self.pair80()
        #expect(other?.mayRetry == true)
    }

    private func pair80() throws -> TLSFailure? {
        let pair = try pair()
        _ = pair.client.take()
        pair.client.give([21, 3, 3, 0, 2, 2, 80])
        return pair.client.failure
    }
}
