/// What is measured of each other member of the cluster.
package enum MemberMetric: CaseIterable, Sendable {
    /// Invalidations that are synced here and that it has not confirmed.
    case lagRecords
}

/// The value of every metric of one member at about one moment.
package struct MemberSnapshot: Sendable {
    /// Its id: 32 hexadecimal digits.
    package let name: String
    package let lagRecords: UInt64

    package init(name: String, lagRecords: UInt64) {
        self.name = name
        self.lagRecords = lagRecords
    }

    package subscript(metric: MemberMetric) -> UInt64 {
        switch metric {
        case .lagRecords: lagRecords
        }
    }
}
