import Ground
import Harness
import NIOCore
import NIOPosix
import Origin
import Testing

@Suite("The addresses to which connections are made")
struct AddressTests {
    static let hiAndClose: [ByteOrigin.Step] = hi + [.close]

    @Test("A name that is rebound to a refused address is refused")
    func rebinding() async throws {
        let names = ["rebound.example": [["127.0.0.1"], ["127.0.0.2"]]]
        try await Rig.run(
            opening: ["127.0.0.1/32"], names: names, settings: { $0.dnsCache.lifetime = .zero }
        ) { rig in
            let outside = try await rig.origin(Self.hiAndClose)
            let inside = try await rig.origin(
                address: "127.0.0.2", port: Int(outside.port), Self.hiAndClose)
            let first = try await rig.get(outside.port, host: "rebound.example")
            #expect(first.text == "hi")
            try await rig.until { $0.connections == 0 }
            let second = try await rig.get(outside.port, host: "rebound.example")
            let refusal = AddressRefusal(range: .loopback, embedding: nil)
            let authority = OriginAuthority(host: "rebound.example", port: outside.port)
            #expect(
                second.failure
                    == .addressRefused(authority, try address("127.0.0.2"), refusal))
            #expect(second.failure?.status == 502)
            #expect(inside.connections == 0)
        }
    }

    @Test("Of a name's addresses only the allowed ones are used")
    func mixed() async throws {
        let names = ["mixed.example": [["127.0.0.2", "10.0.0.1", "127.0.0.1", "::1"]]]
        try await Rig.run(opening: ["127.0.0.1/32"], names: names) { rig in
            let allowed = try await rig.origin(Self.hiAndClose)
            let refused = try await rig.origin(
                address: "127.0.0.2", port: Int(allowed.port), Self.hiAndClose)
            #expect(try await rig.get(allowed.port, host: "mixed.example").text == "hi")
            #expect(allowed.connections == 1 && refused.connections == 0)
        }
    }

    @Test("If a connection fails, the next address is tried")
    func nextAddress() async throws {
        let names = ["two.example": [["127.0.0.3", "127.0.0.1"]]]
        try await Rig.run(names: names) { rig in
            let origin = try await rig.origin(Self.hiAndClose)
            #expect(try await rig.get(origin.port, host: "two.example").text == "hi")
            #expect(try await rig.usage().connectionsStarted == 2)
        }
    }

    @Test("An address in the URL is subject to the guard, and is not looked up")
    func literals() async throws {
        try await Rig.run(opening: []) { rig in
            for host in ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254"] {
                let outcome = try await rig.get(80, host: host)
                guard case .addressRefused? = outcome.failure else {
                    Issue.record("\(host): \(String(describing: outcome.end))")
                    continue
                }
            }
            #expect(try await rig.usage().connectionsStarted == 0)
        }
    }

    @Test("A connection to an IPv6 address in the URL")
    func ipv6() async throws {
        try await Rig.run { rig in
            guard let origin = try? await rig.origin(address: "::1", hi) else { return }
            let response = try await rig.get(origin.port, host: "[::1]")
            #expect(response.text == "hi")
            #expect(origin.requests.first?.contains("Host: [::1]:\(origin.port)\r\n") == true)
        }
    }

    @Test("Origins that match no pattern are refused before any look-up")
    func patterns() async throws {
        let names = ["a.example": [["127.0.0.1"]], "b.example": [["127.0.0.1"]]]
        try await Rig.run(patterns: ["a.example"], names: names) { rig in
            let origin = try await rig.origin(Self.hiAndClose)
            #expect(try await rig.get(origin.port, host: "a.example").text == "hi")
            let refused = try await rig.get(origin.port, host: "b.example")
            let authority = OriginAuthority(host: "b.example", port: origin.port)
            #expect(refused.failure == .originNotAllowed(authority))
            #expect(rig.resolver.asked("b.example") == 0)
        }
    }

    @Test("Changed rules apply from then on, even to idle connections")
    func adopted() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(hi)
            #expect(try await rig.get(origin.port).text == "hi")
            try await rig.with {
                $0.reconfigure(
                    settings: $0.settings, addressGuard: AddressGuard(), patterns: [.everything])
            }
            guard case .addressRefused? = try await rig.get(origin.port).failure else {
                Issue.record("an idle connection was used under changed rules")
                return
            }
        }
    }

    @Test("Concurrent fetches share one look-up of a name")
    func lookupsShared() async throws {
        try await Rig.run(names: ["slow.example": []]) { rig in
            var outcomes: [EventLoopFuture<Outcome>] = []
            for _ in 1...10 {
                outcomes.append(try await rig.begin(80, host: "slow.example"))
            }
            #expect(rig.resolver.asked("slow.example") == 1)
            rig.resolver.answerTheRest()
            for outcome in outcomes {
                #expect(
                    try await outcome.get().failure
                        == .resolverFailed("slow.example", reason: "given up"))
            }
        }
    }

    @Test("At the limit on look-ups a fetch is refused as overloaded")
    func lookupsMax() async throws {
        try await Rig.run(
            names: ["slow.example": []], settings: { $0.lookupsMax = 1 }
        ) { rig in
            let slow = try await rig.begin(80, host: "slow.example")
            let second = try await rig.get(80, host: "other.example")
            #expect(second.failure == .overloaded(.lookups))
            rig.resolver.answerTheRest()
            _ = try await slow.get()
        }
    }

    @Test("The system's resolver knows localhost and reports unknown names")
    func system() async throws {
        let threads = NIOThreadPool(numberOfThreads: 1)
        threads.start()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let resolver = SystemResolver(threads: threads)
        let loop = group.next()
        let addresses = try await resolver.addresses(of: "localhost", on: loop).get()
        let loopback = [try address("127.0.0.1"), try address("::1")]
        #expect(!addresses.isEmpty && addresses.allSatisfy(loopback.contains))
        let literal = try await resolver.addresses(of: "8.8.4.4", on: loop).get()
        #expect(literal == [try address("8.8.4.4")])
        await #expect(throws: ResolveFailure.self) {
            try await resolver.addresses(of: "no-such-name.invalid", on: loop).get()
        }
        try await threads.shutdownGracefully()
        await #expect(throws: ResolveFailure.failed("the resolver is stopped")) {
            try await resolver.addresses(of: "localhost", on: loop).get()
        }
        try await group.shutdownGracefully()
    }
}
