package import Cluster
package import Ground
import NIOCore
package import Telemetry

extension PeerAddress {
    /// Returns the address under which other nodes reach one that listens on `listen` and has no
    /// configured address.
    ///
    /// This is `listen`, or if that is the unspecified address, the device address that the others
    /// are most likely to reach: a private IPv4 address before any other. Without a suitable device
    /// it is the loopback address.
    ///
    /// - Parameters:
    ///   - listen: the address for peers.
    ///   - devices: the addresses of the machine's active interfaces.
    /// - Returns: the address for the other nodes.
    package static func advertised(_ listen: ListenAddress, _ devices: [IPAddress]) -> PeerAddress {
        guard listen.address.isUnspecified else {
            return PeerAddress(listen.address, port: listen.port)
        }
        let isFour = listen.address.bitCount == 32
        let fit = devices.filter { device in
            !device.isLoopback && !device.isLinkLocal && (device.bitCount == 32 || !isFour)
        }
        // A container has only one address; on other machines the cluster uses the private network.
        let chosen =
            fit.first { $0.bitCount == 32 && $0.isPrivate } ?? fit.first { $0.bitCount == 32 }
            ?? fit.first ?? (isFour ? .v4(0x7F00_0001) : .v6(1))
        return PeerAddress(chosen, port: listen.port)
    }
}

extension IPAddress {
    /// True for `0.0.0.0` and `::`.
    var isUnspecified: Bool {
        switch self {
        case .v4(let number): number == 0
        case .v6(let number): number == 0
        }
    }

    /// True for 169.254.0.0/16 (RFC 3927) and fe80::/10 (RFC 4291 §2.5.6), which others reach only
    /// with the name of an interface.
    var isLinkLocal: Bool {
        switch self {
        case .v4(let number): number >> 16 == 0xA9FE
        case .v6(let number): number >> 118 == 0xFE80 >> 6
        }
    }

    /// True for an address of a private IPv4 network (RFC 1918 §3).
    var isPrivate: Bool {
        switch self {
        case .v4(let number): number >> 24 == 10 || number >> 20 == 0xAC1 || number >> 16 == 0xC0A8
        case .v6: false
        }
    }

    /// Returns the IP addresses of this machine's interfaces.
    ///
    /// - Throws: the error of the system call that lists the interfaces.
    package static func interfaceAddresses() throws -> [IPAddress] {
        try System.enumerateDevices().compactMap { device in
            device.address?.ipAddress.flatMap { IPAddress($0[...]) }
        }
    }
}
