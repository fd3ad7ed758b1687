import Ground
import Origin
import Testing

@Suite("The address guard")
struct AddressGuardTests {
    /// A refused range with its first and last address, and the neighbouring ordinary addresses
    /// (`nil` if there is none).
    typealias Row = (SpecialPurposeRange, String, String, String?, String?)

    static let v4: [Row] = [
        (.unspecified, "0.0.0.0", "0.255.255.255", nil, "1.0.0.0"),
        (.privateUse, "10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"),
        (.carrierGrade, "100.64.0.0", "100.127.255.255", "100.63.255.255", "100.128.0.0"),
        (.loopback, "127.0.0.0", "127.255.255.255", "126.255.255.255", "128.0.0.0"),
        (.linkLocal, "169.254.0.0", "169.254.255.255", "169.253.255.255", "169.255.0.0"),
        (.privateUse, "172.16.0.0", "172.31.255.255", "172.15.255.255", "172.32.0.0"),
        (.protocolAssignments, "192.0.0.0", "192.0.0.255", "191.255.255.255", "192.0.1.0"),
        (.documentation, "192.0.2.0", "192.0.2.255", "192.0.1.255", "192.0.3.0"),
        (.sixToFourRelay, "192.88.99.0", "192.88.99.255", "192.88.98.255", "192.88.100.0"),
        (.privateUse, "192.168.0.0", "192.168.255.255", "192.167.255.255", "192.169.0.0"),
        (.benchmarking, "198.18.0.0", "198.19.255.255", "198.17.255.255", "198.20.0.0"),
        (.documentation, "198.51.100.0", "198.51.100.255", "198.51.99.255", "198.51.101.0"),
        (.documentation, "203.0.113.0", "203.0.113.255", "203.0.112.255", "203.0.114.0"),
        (.multicast, "224.0.0.0", "239.255.255.255", "223.255.255.255", nil),
        (.reserved, "240.0.0.0", "255.255.255.254", nil, nil),
        (.broadcast, "255.255.255.255", "255.255.255.255", nil, nil),
    ]

    static let v6: [Row] = [
        (.unspecified, "::", "::", nil, nil),
        (.loopback, "::1", "::1", nil, nil),
        (.localTranslation, "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", nil, nil),
        (.discardOnly, "100::", "100:0:0:1:ffff:ffff:ffff:ffff", nil, nil),
        (.reserved, "100:0:0:2::", "1fff:ffff::", nil, "2000::"),
        (
            .protocolAssignments, "2001:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", nil,
            "2001:200::"
        ),
        (.benchmarking, "2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", nil, nil),
        (
            .documentation, "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
            "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::"
        ),
        (
            .documentation, "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
            "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::"
        ),
        (.reserved, "4000::", "5eff:ffff::", "3fff:ffff::", nil),
        (.segmentRouting, "5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", nil, nil),
        (.privateUse, "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", nil, nil),
        (.reserved, "fe00::", "fe7f:ffff:ffff:ffff::1", nil, nil),
        (.linkLocal, "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", nil, nil),
        (.privateUse, "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", nil, nil),
        (.multicast, "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", nil, nil),
    ]

    @Test("The guard for origins that the operator names refuses nothing")
    func open() throws {
        for text in ["127.0.0.1", "10.0.0.7", "::1", "fd00::1", "::ffff:192.168.0.1", "8.8.8.8"] {
            #expect(AddressGuard.unrestricted.evaluate(try #require(IPAddress(text))) == .allowed)
        }
    }

    @Test(
        "A special range is refused to its edges, and its neighbours are not", arguments: v4 + v6
    )
    func edges(
        range: SpecialPurposeRange, first: String, last: String, before: String?, after: String?
    ) throws {
        let addressGuard = AddressGuard()
        let refused = AddressDecision.refused(AddressRefusal(range: range, embedding: nil))
        #expect(addressGuard.evaluate(try address(first)) == refused)
        #expect(addressGuard.evaluate(try address(last)) == refused)
        for case let neighbour? in [before, after] {
            #expect(addressGuard.evaluate(try address(neighbour)) == .allowed)
        }
    }

    /// The IPv6 form of an IPv4 address, and whether the whole form is refused even for public
    /// ones.
    static let forms: [(IPv4Embedding, isRefusedWhole: Bool, @Sendable (UInt32) -> IPAddress)] = [
        (.mapped, false, { .v6(0xFFFF << 32 | UInt128($0)) }),
        (.compatible, true, { .v6(UInt128($0)) }),
        (.translated, true, { .v6(0xFFFF << 48 | UInt128($0)) }),
        (.nat64, false, { .v6(0x0064_FF9B << 96 | UInt128($0)) }),
        (.sixToFour, false, { .v6(0x2002 << 112 | UInt128($0) << 80 | 7 << 64 | 1) }),
        (
            .teredoServer, false,
            { .v6(0x2001_0000 << 96 | UInt128($0) << 64 | UInt128(~UInt32(0x0808_0808))) }
        ),
        (.teredoClient, false, { .v6(0x2001_0000_0808_0808 << 64 | UInt128(~$0)) }),
        (.isatap, false, { .v6(0x2A00_1450 << 96 | 0x5EFE << 32 | UInt128($0)) }),
        (.isatap, false, { .v6(0x2A00_1450 << 96 | 0x0200_5EFE << 32 | UInt128($0)) }),
    ]

    @Test("A refused IPv4 address is refused in every IPv6 form that embeds it", arguments: v4)
    func embedded(
        range: SpecialPurposeRange, first: String, last: String, before: String?, after: String?
    ) throws {
        for (embedding, _, form) in Self.forms {
            for text in [first, last] {
                guard case .v4(let number) = try address(text) else { continue }
                // :: and ::1 are refused as ranges of their own.
                if embedding == .compatible, number <= 1 { continue }
                let outcome = AddressGuard().evaluate(form(number))
                let refusal = AddressRefusal(range: range, embedding: embedding)
                #expect(outcome == .refused(refusal), "\(form(number))")
            }
        }
    }

    @Test("An ordinary IPv4 address is allowed in the IPv6 forms that are still routed")
    func embeddedOrdinary() {
        for (embedding, isRefusedWhole, form) in Self.forms {
            let isAllowed = AddressGuard().evaluate(form(0x0808_0808)) == .allowed
            #expect(isAllowed == !isRefusedWhole, "\(embedding)")
        }
    }

    @Test("Allowing an IPv4 range allows its mapped form and no other embedding")
    func openedV4() throws {
        let addressGuard = AddressGuard(allowing: [try Network(parsing: "10.1.0.0/16")])
        for (text, isAllowed) in [
            ("10.1.0.0", true), ("10.1.255.255", true), ("10.0.255.255", false),
            ("10.2.0.0", false), ("::ffff:10.1.2.3", true), ("::ffff:10.2.2.3", false),
            ("64:ff9b::10.1.2.3", false), ("2002:a01:203::1", false), ("::10.1.2.3", false),
        ] {
            #expect((addressGuard.evaluate(try address(text)) == .allowed) == isAllowed, "\(text)")
        }
    }

    @Test("Allowing an IPv6 range allows all its addresses, whatever they embed")
    func openedV6() throws {
        let addressGuard = AddressGuard(
            allowing: [try Network(parsing: "fd12::/16"), try Network(parsing: "64:ff9b::/96")])
        for (text, isAllowed) in [
            ("fd12::1", true), ("fd13::1", false), ("fd12::5efe:127.0.0.1", true),
            ("64:ff9b::10.0.0.1", true), ("10.0.0.1", false), ("::ffff:10.0.0.1", false),
        ] {
            #expect((addressGuard.evaluate(try address(text)) == .allowed) == isAllowed, "\(text)")
        }
    }

    @Test("Filtering keeps the allowed addresses in order")
    func filter() throws {
        let texts = ["10.0.0.1", "8.8.8.8", "::1", "2a00:1450::1", "127.0.0.1", "1.1.1.1"]
        let left = AddressGuard().allowed(of: try texts.map(address))
        #expect(left.map(\.description) == ["8.8.8.8", "2a00:1450::1", "1.1.1.1"])
    }

    @Test("A refusal names the range and the embedding")
    func sentence() throws {
        guard case .refused(let refusal) = AddressGuard().evaluate(try address("2002:7f00:1::"))
        else {
            Issue.record("6to4 of 127.0.0.1 is allowed")
            return
        }
        #expect(refusal.description == "loopback, embedded in IPv6 as 6to4")
    }
}

func address(_ text: String) throws -> IPAddress {
    try #require(IPAddress(text), "\(text)")
}
