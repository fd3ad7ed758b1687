import COpenSSL
import Certificates
import Ground
import NIOCore
import Testing
import Wire

/// Counts OpenSSL's objects that were created on one thread and not freed.
@safe
private final class ObjectCensus: @unchecked Sendable {
    private(set) var alive = 0
    private(set) var made = 0
    private let thread = CRYPTO_THREAD_get_current_id()
    private var kinds: [(kind: CInt, index: CInt)] = []

    init() {
        let own = unsafe Unmanaged.passUnretained(self).toOpaque()
        for kind in [
            CRYPTO_EX_INDEX_SSL, CRYPTO_EX_INDEX_SSL_CTX, CRYPTO_EX_INDEX_SSL_SESSION,
            CRYPTO_EX_INDEX_X509, CRYPTO_EX_INDEX_X509_STORE, CRYPTO_EX_INDEX_BIO,
            CRYPTO_EX_INDEX_EVP_PKEY,
        ] {
            let index = unsafe CRYPTO_get_ex_new_index(
                kind, 0, own,
                { _, _, data, index, _, own in unsafe ObjectCensus.count(data, index, own, 1) },
                { _, _, data, _, _, _ in 1 },
                { _, _, data, index, _, own in
                    unsafe ObjectCensus.count(data, index, own, -1)
                })
            kinds.append((kind, index))
        }
    }

    /// Removes the allocation hooks from OpenSSL.
    func end() {
        for (kind, index) in kinds { CRYPTO_free_ex_index(kind, index) }
    }

    private static func count(
        _ data: UnsafeMutablePointer<CRYPTO_EX_DATA>?, _ index: CInt,
        _ own: UnsafeMutableRawPointer?, _ step: Int
    ) {
        guard let own = unsafe own else { return }
        let census = unsafe Unmanaged<ObjectCensus>.fromOpaque(own).takeUnretainedValue()
        if step > 0 {
            guard CRYPTO_THREAD_compare_id(census.thread, CRYPTO_THREAD_get_current_id()) == 1
            else { return }
            unsafe CRYPTO_set_ex_data(data, index, own)
            census.alive += 1
            census.made += 1
        } else if unsafe CRYPTO_get_ex_data(data, index) == own {
            census.alive -= 1
        }
    }
}

@Suite struct LifetimeTests {
    @Test("Many sessions leave nothing behind, whatever their outcome")
    func nothingLeft() throws {
        let authority = TestCertificate.authority.pem
        let leaf = TestCertificate.exampleLeaf.identity
        let census = ObjectCensus()
        defer { census.end() }
        try converse(rounds: 1500, authority: authority, leaf: leaf)
        #expect(census.made > 10_000)
        #expect(census.alive == 0)
    }

    private func converse(rounds: Int, authority: [UInt8], leaf: TLSIdentity) throws {
        let server = try TLSServerContext(TLSServerSettings(identities: [leaf, leaf]))
        server.setTicketKeys(TicketKeys(now: noon, entropy: TicketKeysTests.dice(1)))
        let client = try TLSClientContext(
            TLSClientSettings(trustsSystem: false, issuersPEM: authority))
        let pins = try [#require(TLSPin("sha256/" + String(repeating: "A", count: 43) + "="))]
        let pinned = try TLSClientContext(TLSClientSettings(trustsSystem: false, pins: pins))
        let peers = try (1...2).map {
            try TLSPeerContext(secrets: [[UInt8](repeating: $0, count: 32)])
        }
        var ticket: TLSResumption?
        for round in 0..<rounds {
            let pair =
                switch round % 5 {
                case 0, 1:
                    Pair(
                        client: TLSSession(client, to: .name("a.example"), resuming: ticket),
                        server: TLSSession(server))
                case 2:
                    Pair(
                        client: TLSSession(pinned, to: .name("a.example")),
                        server: TLSSession(server))
                case 3:
                    Pair(
                        client: TLSSession(peer: peers[0], dials: true),
                        server: TLSSession(peer: peers[0], dials: false))
                default:
                    Pair(
                        client: TLSSession(peer: peers[0], dials: true),
                        server: TLSSession(peer: peers[1], dials: false))
                }
            // Some are dropped during the handshake.
            if round % 7 == 0 { continue }
            pair.run()
            #expect((pair.client.failure != nil) == (round % 5 == 2 || round % 5 == 4))
            ticket = pair.client.session.newResumption ?? ticket
        }
        // A context that cannot be created leaves nothing behind either.
        for key in [leaf.chainPEM, Array(leaf.keyPEM.prefix(60)), []] {
            #expect(throws: TLSSetupError.self) {
                let broken = TLSIdentity(chainPEM: leaf.chainPEM, keyPEM: key)
                return try TLSServerContext(TLSServerSettings(identities: [leaf, broken]))
            }
        }
    }

    @Test("An error of one session does not appear in the next")
    func queue() throws {
        for _ in 0..<20 {
            let bad = try pair(name: .name("b.example")).run()
            #expect(bad.client.failure != nil && bad.server.failure != nil)
            #expect(ERR_peek_error() == 0)
            let good = try pair().run()
            #expect(good.client.parameters != nil && good.server.parameters != nil)
            #expect(ERR_peek_error() == 0)
        }
        #expect(throws: TLSSetupError.self) {
            try TLSServerContext(
                TLSServerSettings(identities: [TLSIdentity(chainPEM: [1], keyPEM: [2])]))
        }
        #expect(ERR_peek_error() == 0)
    }
}
