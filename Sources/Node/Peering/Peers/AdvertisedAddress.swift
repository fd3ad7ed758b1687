import Cluster
import Ground
import NIOCore
import Telemetry

extension PeerAddress {
    /// Where others reach a node that listens on `listen`, and was given no other address to tell:
    /// there, or, if that is every address of the machine, on the one that the others most likely
    /// reach.
    ///
    /// `devices` are the addresses of the machine's interfaces that are up.
    static func advertised(_ listen: ListenAddress, _ devices: [IPAddress]) -> PeerAddress {
        guard listen.address.isUnspecified else {
            return PeerAddress(listen.address, port: listen.port)
        }
        let isFour = listen.address.bitCount == 32
        let fit = devices.filter { device in
            !device.isLoopback && !device.isLinkLocal && (device.bitCount == 32 || !isFour)
        }
        // A container has one of them; on other machines the private network is the cluster's.
        let chosen =
            fit.first { $0.bitCount == 32 && $0.isPrivate } ?? fit.first { $0.bitCount == 32 }
            ?? fit.first ?? (isFour ? .v4(0x7F00_0001) : .v6(1))
        return PeerAddress(chosen, port: listen.port)
    }
}

extension IPAddress {
    /// `0.0.0.0` or `::`.
    var isUnspecified: Bool {
        switch self {
        case .v4(let number): number == 0
        case .v6(let number): number == 0
        }
    }

    /// 169.254.0.0/16 (RFC 3927) or fe80::/10 (RFC 4291 §2.5.6), which others reach only with the
    /// name of an interface.
    var isLinkLocal: Bool {
        switch self {
        case .v4(let number): number >> 16 == 0xA9FE
        case .v6(let number): number >> 118 == 0xFE80 >> 6
        }
    }

    /// Of a private network (RFC 1918 §3).
    var isPrivate: Bool {
        switch self {
        case .v4(let number): number >> 24 == 10 || number >> 20 == 0xAC1 || number >> 16 == 0xC0A8
        case .v6: false
        }
    }

    /// The addresses of this machine's interfaces.
    static func interfaceAddresses() throws -> [IPAddress] {
        try System.enumerateDevices().compactMap { device in
            device.address?.ipAddress.flatMap { IPAddress($0[...]) }
        }
    }
}
