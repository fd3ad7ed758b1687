import FuzzSupport
import Ground
import NIOCore
import Wire

/// Both ends of TLS with a wire between them that changes what it carries: the first byte says who
/// speaks, and whether the rest are changes (where, as two bytes, and how) of a conversation or
/// bytes that a stranger sends.
///
/// Held: if both agree, they agree on the same; what is read is the beginning of what was written;
/// what has ended stays so; a connection that is cut never looks like one that was ended.
private func fuzz(_ input: [UInt8]) {
    let (dialler, acceptor) = stage.ends(isPeer: input[0] & 2 != 0)
    let wire = Wiretap(dialler, acceptor)
    if input[0] & 4 == 0 {
        wire.converse(changes: Changes(Array(input.dropFirst())))
    } else {
        wire.intrude(Array(input.dropFirst()), isLate: input[0] & 1 != 0)
    }
    wire.judge()
}

/// The program's start.
@c(fuzz_tls_main)
public func start(_ count: CInt, _ arguments: UnsafeMutableRawPointer?) -> CInt {
    unsafe runFuzzer(count, arguments, atLeast: 1, fuzz)
}

/// What sessions are made of, made once.
private let stage = Stage()

private struct Stage {
    private let server: TLSServerContext
    private let client: TLSClientContext
    private let peer: TLSPeerContext

    init() {
        do {
            let made = SelfSigned()
            server = try TLSServerContext(TLSServerSettings(identities: [made.identity]))
            let dice = (0..<TicketKeys.diceBytes).map { UInt8($0) }
            server.adopt(TicketKeys(now: .zero, dice: dice))
            client = try TLSClientContext(
                TLSClientSettings(trustsSystem: false, issuersPEM: made.identity.chainPEM))
            peer = try TLSPeerContext(secrets: [Array(repeating: 7, count: 32)])
        } catch {
            preconditionFailure("\(error)")
        }
    }

    func ends(isPeer: Bool) -> (TLSSession, TLSSession) {
        isPeer
            ? (TLSSession(peer: peer, dials: true), TLSSession(peer: peer, dials: false))
            : (TLSSession(client, to: .name(SelfSigned.name)), TLSSession(server))
    }
}
