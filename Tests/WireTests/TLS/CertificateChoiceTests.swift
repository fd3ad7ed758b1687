import COpenSSL
import Certificates
import Ground
import Testing
import Wire

@Suite struct CertificateChoiceTests {
    static let first = TestCertificate("first", names: "DNS:first.example", issuer: .authority)
    static let exact = TestCertificate("exact", names: "DNS:A.b.example", issuer: .authority)
    static let wild = TestCertificate(
        "wild", names: "DNS:*.b.example,DNS:b.example", issuer: .authority)
    static let other = TestCertificate(
        "other", names: "DNS:a.b.example,DNS:*.c.example,DNS:f*.d.example", issuer: .authority)

    @Test(
        "The requested name chooses the certificate",
        arguments: [
            (nil, first), ("first.example", first), ("FIRST.example", first),
            ("a.b.example", exact), ("A.B.EXAMPLE", exact), ("x.b.example", wild),
            ("b.example", wild), ("x.y.b.example", first), ("x.c.example", other),
            ("c.example", first), ("foo.d.example", first), ("nobody.example", first),
            ("1.2.3.4", first), ("not a name", first), ("a.b.example.", exact),
        ] as [(String?, TestCertificate)])
    func byName(name: String?, certificate: TestCertificate) throws {
        let context = try TLSServerContext(
            TLSServerSettings(Self.first, Self.exact, Self.wild, Self.other))
        for version in [TLS1_2_VERSION, TLS1_3_VERSION] {
            let raw = unsafe RawEnd.client(name: name) { unsafe RawEnd.only(version, in: $0) }
            let server = run(raw, TLSSession(context))
            #expect(server.parameters != nil)
            #expect(raw.sees(certificate))
        }
    }

    @Test("Of two kinds of keys for one name, each client gets one that it can verify")
    func byKey() throws {
        let rsa = TestCertificate(
            "rsa", names: "DNS:*.example", key: .rsa, issuer: .authority)
        let ecdsa = TestCertificate(
            "ecdsa", names: "DNS:a.example,DNS:b.example", issuer: .authority)
        for order in [[rsa, ecdsa], [ecdsa, rsa]] {
            let settings = TLSServerSettings(identities: order.map(\.identity))
            let context = try TLSServerContext(settings)
            for (signatures, certificate) in [
                ("RSA-PSS+SHA256:RSA+SHA256", rsa), ("ECDSA+SHA256", ecdsa),
            ] {
                for version in [TLS1_2_VERSION, TLS1_3_VERSION] {
                    let raw = unsafe RawEnd.client(name: "a.example") { context in
                        unsafe RawEnd.only(version, in: context)
                        var text = signatures.utf8.map { CChar(bitPattern: $0) } + [0]
                        unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_SIGALGS_LIST, 0, &text)
                    }
                    let server = run(raw, TLSSession(context))
                    #expect(server.parameters != nil)
                    #expect(raw.sees(certificate))
                }
            }
        }
    }

    @Test("A client that requests OCSP gets the staple of its certificate unchanged")
    func stapled() throws {
        var settings = TLSServerSettings(Self.first, Self.wild)
        let response = (0..<500).map { UInt8(truncatingIfNeeded: $0) }
        settings.identities[1].ocspDER = response
        let context = try TLSServerContext(settings)
        for (name, expected) in [("b.example", response), ("first.example", nil)] {
            let raw = unsafe RawEnd.client(name: name)
            unsafe SSL_ctrl(
                raw.ssl, SSL_CTRL_SET_TLSEXT_STATUS_REQ_TYPE, Int(TLSEXT_STATUSTYPE_ocsp), nil)
            let server = run(raw, TLSSession(context))
            #expect(server.parameters != nil)
            var start: UnsafeMutablePointer<UInt8>?
            let count = unsafe withUnsafeMutablePointer(to: &start) { start in
                unsafe SSL_ctrl(raw.ssl, SSL_CTRL_GET_TLSEXT_STATUS_REQ_OCSP_RESP, 0, start)
            }
            if let expected {
                #expect(count == expected.count)
                let got = unsafe Array(UnsafeBufferPointer(start: start, count: max(0, count)))
                #expect(got == expected)
            } else {
                #expect(count <= 0)
            }
        }
    }

    @Test("New certificates apply to new connections, and old connections continue")
    func reload() throws {
        let old = try TLSServerContext(TLSServerSettings(Self.first))
        let open = unsafe RawEnd.client()
        let server = run(open, TLSSession(old))
        let new = try TLSServerContext(TLSServerSettings(Self.wild))
        let next = unsafe RawEnd.client()
        run(next, TLSSession(new))
        #expect(open.sees(Self.first) && next.sees(Self.wild))
        open.write([1, 2, 3])
        run(open, server)
        #expect(server.data == [1, 2, 3])
    }

    @Test("A chain is sent with its intermediate certificates")
    func chain() throws {
        let middle = TestCertificate("middle", isIssuer: true, issuer: .authority)
        let leaf = TestCertificate("leaf", names: "DNS:a.example", issuer: middle)
        let pair = try pair(leaf).run()
        #expect(pair.client.parameters?.certificate?.subject == "CN=leaf")
    }

    @Test("Unusable certificates are refused at once, with the reason")
    func setup() {
        let good = Self.first.identity
        let encrypted = Array(
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\n-----END ENCRYPTED PRIVATE KEY-----\n".utf8)
        let cases: [(TLSIdentity, String)] = [
            (TLSIdentity(chainPEM: [], keyPEM: good.keyPEM), "no PEM certificate"),
            (TLSIdentity(chainPEM: good.keyPEM, keyPEM: good.keyPEM), "no PEM certificate"),
            (TLSIdentity(chainPEM: good.chainPEM, keyPEM: []), "no PEM private key"),
            (TLSIdentity(chainPEM: good.chainPEM, keyPEM: good.chainPEM), "no PEM private key"),
            (TLSIdentity(chainPEM: good.chainPEM, keyPEM: encrypted), "encrypted"),
            (
                TLSIdentity(
                    chainPEM: good.chainPEM.map { $0 == 0x4D ? 0x21 : $0 }, keyPEM: good.keyPEM),
                "Certificate 2 cannot be read"
            ),
            (
                TLSIdentity(chainPEM: good.chainPEM, keyPEM: Self.wild.keyPEM),
                "Certificate 2 and its key cannot be used"
            ),
        ]
        for (identity, words) in cases {
            do throws(TLSSetupError) {
                _ = try TLSServerContext(TLSServerSettings(identities: [good, identity]))
                Issue.record("accepted: \(words)")
            } catch {
                #expect(error.message.contains(words), "\(error.message)")
            }
        }
        #expect(throws: TLSSetupError.noIdentity) {
            try TLSServerContext(TLSServerSettings(identities: []))
        }
    }
}
