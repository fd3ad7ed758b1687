import COpenSSL
import Certificates
import Ground
import Testing
import Wire

@Suite("A server that requires client certificates") struct ClientCertificateTests {
    private static let clients = TestCertificate("Clients", isIssuer: true)

    private func serve(_ certificate: TestCertificate?, version: CInt) throws -> PairEnd {
        var settings = TLSServerSettings(.exampleLeaf)
        settings.clientCAPEM = Self.clients.pem
        let context = try TLSServerContext(settings)
        context.setTicketKeys(TicketKeys(now: noon, entropy: TicketKeysTests.dice(1)))
        let raw = unsafe RawEnd.client { context in
            unsafe RawEnd.only(version, in: context)
            if let certificate { unsafe RawEnd.show(certificate, in: context) }
        }
        let end = run(raw, TLSSession(context))
        raw.write([1])
        run(raw, end)
        #expect(end.data == (end.failure == nil ? [1] : []))
        #expect(end.failure == nil || end.failure?.side == .client)
        #expect(end.failure == nil || raw.hasFailed)
        return end
    }

    @Test(
        "The server accepts certificates of the issuer",
        arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func right(version: CInt) throws {
        let end = try serve(
            TestCertificate("admin", issuer: Self.clients), version: version)
        #expect(end.parameters?.certificate?.subject == "CN=admin")
    }

    @Test(
        "The server refuses all others with the reason",
        arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func wrong(version: CInt) throws {
        #expect(try serve(nil, version: version).failure?.cause == .certificateMissing)
        #expect(
            try serve(nil, version: version).failure?.message
                == "The client sent no certificate.")
        #expect(
            try serve(.exampleLeaf, version: version).failure?.cause
                == .unknownIssuer("CN=Test authority"))
        #expect(
            try serve(TestCertificate("x"), version: version).failure?.cause == .selfSigned)
        let past = TestCertificate("admin", validity: .past, issuer: Self.clients)
        guard case .expired? = try serve(past, version: version).failure?.cause else {
            Issue.record("not refused")
            return
        }
    }
}
