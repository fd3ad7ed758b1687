import COpenSSL
import Certificates
import Ground
import Testing
import Wire

@Suite("Pinned keys") struct PinTests {
    /// The pin computed independently from the parts of the certificate.
    private func pin(of certificate: TestCertificate) throws -> TLSPin {
        var start: UnsafeMutablePointer<UInt8>?
        let count = unsafe i2d_PUBKEY(certificate.key, &start)
        defer { unsafe CRYPTO_free(start, nil, 0) }
        var digest = [UInt8](repeating: 0, count: 32)
        unsafe EVP_Digest(start, Int(count), &digest, nil, EVP_sha256(), nil)
        var coded = [UInt8](repeating: 0, count: 45)
        unsafe EVP_EncodeBlock(&coded, digest, 32)
        let text = "sha256/" + String(decoding: coded.prefix(44), as: UTF8.self)
        let pin = try #require(TLSPin(text))
        #expect(pin.text == text)
        return pin
    }

    private func failure(
        _ certificate: TestCertificate, pins: [TLSPin], name: TLSServerName = .name("a.example"),
        trustsAuthority: Bool = false
    ) throws -> TLSFailure? {
        let pair = try pair(
            certificate, name: name,
            client: { client in
                client.pins = pins
                if !trustsAuthority { client.issuersPEM = nil }
            })
        pair.run()
        #expect((pair.client.failure == nil) == (pair.client.parameters != nil))
        return pair.client.failure
    }

    @Test("A pinned key is sufficient without a trusted issuer")
    func pinned() throws {
        let own = TestCertificate("a", names: "DNS:a.example,IP:127.0.0.1")
        let other = TestCertificate("a", names: "DNS:a.example")
        let pins = try [pin(of: other), pin(of: own)]
        #expect(try failure(own, pins: pins) == nil)
        #expect(try failure(own, pins: pins, name: .address(.v4(0x7F00_0001))) == nil)
    }

    @Test("Any other key is refused, even with a trusted issuer")
    func otherKey() throws {
        let other = TestCertificate("a", names: "DNS:a.example")
        let expected = try TLSFailureCause.wrongPin(pin(of: .exampleLeaf).text)
        let pins = try [pin(of: other)]
        #expect(try failure(.exampleLeaf, pins: pins, trustsAuthority: true)?.cause == expected)
        #expect(try failure(.exampleLeaf, pins: pins)?.cause == expected)
        let sentence = try failure(.exampleLeaf, pins: pins)?.message
        #expect(
            sentence?.hasPrefix("The origin's certificate has a key that is not pinned: sha256/")
                == true)
    }

    @Test("The certificate of a pinned key must be valid and name the host")
    func stillChecked() throws {
        let past = TestCertificate("a", names: "DNS:a.example", validity: .past)
        guard case .expired? = try failure(past, pins: [pin(of: past)])?.cause else {
            Issue.record("not refused")
            return
        }
        let future = TestCertificate("a", names: "DNS:a.example", validity: .future)
        guard case .notYetValid? = try failure(future, pins: [pin(of: future)])?.cause else {
            Issue.record("not refused")
            return
        }
        let elsewhere = TestCertificate("a.example", names: "DNS:b.example,DNS:a*.example")
        let pins = try [pin(of: elsewhere)]
        #expect(
            try failure(elsewhere, pins: pins)?.cause
                == .wrongHost(.name("a.example"), names: ["b.example"]))
        #expect(
            try failure(elsewhere, pins: pins, name: .address(.v6(1)))?.cause
                == .wrongHost(.address(.v6(1)), names: ["b.example"]))
    }

    @Test(
        "Malformed pins are refused",
        arguments: [
            "", "sha256/", "sha1/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB=",
            "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==",
            "sha256/AAAAAAAAAAAAAAAAAAAA AAAAAAAAAAAAAAAAAAAAAAA=",
            "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            "SHA256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        ])
    func noPin(text: String) {
        #expect(TLSPin(text) == nil)
        #expect(TLSPin("sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=") != nil)
    }
}
