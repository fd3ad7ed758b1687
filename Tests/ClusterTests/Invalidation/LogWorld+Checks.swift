import Cluster
import Ground
import Testing

extension LogWorld {
    /// Checks that everything reported as confirmed is.
    func checkReceipts() {
        for host in hosts {
            for name in contents.keys {
                guard let receipt = host.log.receipt(of: name) else { continue }
                for line in receipt.confirmations where line.status.isConfirmed {
                    #expect(hosts[Self.index(line.node)].has(name), "confirmed before the sync")
                }
            }
        }
    }
}

extension LogWorld.Host {
    func has(_ name: RecordID) -> Bool {
        hasAll(StreamPosition(process: name.stream, count: name.number), from: name.number)
    }

    /// True if everything up to the position is synced, or below a synced floor.
    func hasAll(_ position: StreamPosition, from first: UInt64 = 1) -> Bool {
        var numbers: Set<UInt64> = []
        var floor: UInt64 = 0
        for write in disk {
            if let name = write.record?.id, name.stream == position.process {
                numbers.insert(name.number)
            }
            if let below = write.floor, below.process == position.process {
                floor = max(floor, below.count)
            }
        }
        for below in retired where below.process == position.process {
            floor = max(floor, below.count)
        }
        let start = max(floor + 1, first)
        return start > position.count
            || (start...position.count).allSatisfy(numbers.contains)
    }
}

extension LogWrite {
    var record: InvalidationRecord? {
        if case .record(let record, _) = self { record } else { nil }
    }

    var floor: StreamPosition? {
        if case .floor(let position, _) = self { position } else { nil }
    }

    func isOwn(of process: ProcessID) -> Bool { record?.id.stream == process }
}
