import COpenSSL
import Certificates
import Ground
import NIOCore
import Testing
import Wire

@Suite struct ResumptionTests {
    private let client: TLSClientContext

    init() throws {
        client = try TLSClientContext(TLSClientSettings(trusting: .authority))
    }

    private func server(
        _ keys: TicketKeys?, change: (inout TLSServerSettings) -> Void = { _ in }
    ) throws -> TLSServerContext {
        var settings = TLSServerSettings(.exampleLeaf)
        change(&settings)
        let context = try TLSServerContext(settings)
        if let keys { context.setTicketKeys(keys) }
        return context
    }

    private func connect(
        _ server: TLSServerContext, resuming: TLSResumption? = nil,
        to host: TLSServerName = .name("a.example")
    ) throws -> Pair {
        let pair = Pair(
            client: TLSSession(client, to: host, resuming: resuming), server: TLSSession(server))
        pair.run()
        #expect(pair.client.parameters != nil)
        #expect(pair.client.parameters?.isResumed == pair.server.parameters?.isResumed)
        #expect(pair.client.parameters?.group != nil)
        return pair
    }

    private let keys = TicketKeys(now: noon, entropy: TicketKeysTests.dice(1))

    @Test("A ticket resumes a session at every context with its key")
    func resumed() throws {
        let first = try connect(server(keys))
        #expect(first.client.parameters?.isResumed == false)
        let ticket = try #require(first.client.session.newResumption)
        let second = try connect(server(keys), resuming: ticket)
        #expect(second.client.parameters?.isResumed == true)
        #expect(second.client.parameters?.certificate?.subject == "CN=a")
        #expect(second.client.parameters?.applicationProtocol == .http2)
        #expect(second.server.parameters?.serverName == "a.example")
        // The ticket of the resumed session resumes the next, and so on.
        let next = try #require(second.client.session.newResumption)
        #expect(try connect(server(keys), resuming: next).client.parameters?.isResumed == true)
    }

    @Test("A truncated connection does not invalidate its ticket")
    func cut() throws {
        var ticket: TLSResumption?
        do {
            let first = try connect(server(keys))
            ticket = first.client.session.newResumption
            _ = first.client.session.inputClosed()
        }
        #expect(try connect(server(keys), resuming: ticket).client.parameters?.isResumed == true)
    }

    @Test("Tickets of a rotated key are accepted until it is dropped")
    func rotated() throws {
        let ticket = try connect(server(keys)).client.session.newResumption
        var rotated = keys
        rotated.rotate(now: noon, entropy: TicketKeysTests.dice(2))
        let again = try connect(server(rotated), resuming: ticket)
        #expect(again.client.parameters?.isResumed == true)
        // The new ticket is sealed with the new key.
        let renewed = again.client.session.newResumption
        rotated.removeExpired(now: noon + TicketKeys.lifetime)
        #expect(
            try connect(server(rotated), resuming: ticket).client.parameters?.isResumed == false)
        #expect(
            try connect(server(rotated), resuming: renewed).client.parameters?.isResumed == true)
    }

    @Test("Keys adopted later are used by the next session")
    func adopted() throws {
        let server = try server(keys)
        let ticket = try connect(server).client.session.newResumption
        server.setTicketKeys(TicketKeys(now: noon, entropy: TicketKeysTests.dice(2)))
        #expect(try connect(server, resuming: ticket).client.parameters?.isResumed == false)
    }

    @Test("A server without keys issues no tickets")
    func withoutKeys() throws {
        #expect(try connect(server(nil)).client.session.newResumption == nil)
        let raw = unsafe RawEnd.client { unsafe RawEnd.only(TLS1_2_VERSION, in: $0) }
        let end = try run(raw, TLSSession(server(nil)))
        #expect(end.parameters?.version == .tls12)
        let session = unsafe SSL_get_session(raw.ssl)
        #expect(unsafe SSL_SESSION_has_ticket(session) == 0)
    }

    @Test("TLS 1.2 is resumed by tickets too, and tickets of an older key are renewed")
    func version12() throws {
        var rotated = keys
        rotated.rotate(now: noon, entropy: TicketKeysTests.dice(2))
        let first = unsafe RawEnd.client(name: "a.example") {
            unsafe RawEnd.only(TLS1_2_VERSION, in: $0)
        }
        try run(first, TLSSession(server(keys)))
        let session = unsafe SSL_get1_session(first.ssl)
        defer { unsafe SSL_SESSION_free(session) }
        for adopted in [keys, rotated, TicketKeys(now: noon, entropy: TicketKeysTests.dice(3))] {
            let next = unsafe RawEnd.client(name: "a.example") {
                unsafe RawEnd.only(TLS1_2_VERSION, in: $0)
            }
            unsafe SSL_set_session(next.ssl, session)
            let end = try run(next, TLSSession(server(adopted)))
            let isKnown = adopted != TicketKeys(now: noon, entropy: TicketKeysTests.dice(3))
            #expect(end.parameters?.isResumed == isKnown)
            let isRenewed = unsafe SSL_get_session(next.ssl) != session
            #expect(isRenewed == (adopted != keys))
        }
    }

    @Test("A ticket is not used for another host or another context")
    func bound() throws {
        let server = try server(keys) { settings in
            settings.identities = [
                TestCertificate("ab", names: "DNS:a.example,DNS:b.example", issuer: .authority)
                    .identity
            ]
        }
        let ticket = try connect(server).client.session.newResumption
        #expect(
            try connect(server, resuming: ticket, to: .name("b.example"))
                .client.parameters?.isResumed == false)
        let other = try TLSClientContext(TLSClientSettings(trusting: .authority))
        let pair = Pair(
            client: TLSSession(other, to: .name("a.example"), resuming: ticket),
            server: TLSSession(server))
        pair.run()
        #expect(pair.client.parameters?.isResumed == false)
    }

    @Test("A session without a client certificate is not resumed where one is required")
    func clientCertificate() throws {
        let open = try server(keys)
        let strict = try server(keys) { $0.clientCAPEM = TestCertificate.authority.pem }
        let ticket = try connect(open).client.session.newResumption
        let pair = Pair(
            client: TLSSession(client, to: .name("a.example"), resuming: ticket),
            server: TLSSession(strict))
        pair.run()
        #expect(pair.server.failure?.cause == .certificateMissing)
    }

    @Test("Early data is off and not read")
    func earlyData() throws {
        let first = unsafe RawEnd.client(name: "a.example") { _ in }
        try run(first, TLSSession(server(keys)))
        let session = unsafe SSL_get_session(first.ssl)
        #expect(unsafe SSL_SESSION_has_ticket(session) == 1)
        #expect(unsafe SSL_SESSION_get_max_early_data(session) == 0)
    }
}
