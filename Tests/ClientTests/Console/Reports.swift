import Admin
import Client
import Foundation

/// Reports like a node's, with the values under test.
enum Reports {
    static func id(_ digit: Int) -> String { String(repeating: "\(digit)", count: 32) }

    static func member(
        _ digit: Int, _ state: String = "alive", isSelf: Bool = false, lag: UInt64? = 0
    ) -> MemberDocument {
        MemberDocument(
            node: id(digit), process: id(digit), address: "10.0.0.\(digit):8082", state: state,
            isVoter: true, millisecondsSinceContact: 100, weight: 100, isCaughtUp: true,
            isDraining: false, isSelf: isSelf, isConnected: state == "alive",
            primaryShare: state == "alive" ? 0.2 : 0, lagRecords: isSelf ? nil : lag)
    }

    /// Statistics `at` milliseconds after the start, with `hits` from memory and `misses` from the
    /// origin, of 10 KiB each.
    static func statistics(
        _ own: Int, at milliseconds: Int64, hits: UInt64 = 0, misses: UInt64 = 0,
        members: [MemberDocument] = [], fenced: Int64? = nil, pending: Int = 0
    ) throws -> StatisticsReport {
        let none: JSON = .list(Array(repeating: 0, count: 4))
        func counts(_ scale: UInt64) -> JSON {
            [
                "memory": JSON(hits * scale), "disk": 0, "peer": 0, "origin": JSON(misses * scale),
                "revalidated": 0, "collapsed": 0, "stale": 0, "passed": 0, "none": 0,
            ]
        }
        let document: JSON = [
            "at_ms": .number(milliseconds), "requests": counts(1), "bytes": counts(10_240),
            "origin": [
                "fetches_ok": JSON(misses), "fetches_failed": 0,
                "received_bytes": JSON(misses * 10_240),
            ],
            "latency": [
                "bounds_us": [50, 100, 1_000], "memory": [JSON(hits), 0, 0, 0], "disk": none,
                "peer": none, "origin": [0, 0, JSON(misses), 0],
            ],
            "readiness": "ready", "fenced": .bool(fenced != nil), "fenced_ms": JSON(fenced),
            "memory": [
                "used_bytes": .number(220 << 20), "limit_bytes": .number(512 << 20),
                "pinned_bytes": 0, "entries": 22_000,
            ],
            "disk": [
                "up": true, "used_bytes": .number(3 << 30), "limit_bytes": .number(10 << 30),
                "entries": 300_000,
            ],
            "invalidations": ["applied": 7, "records": 7, "receipts_pending": JSON(pending)],
            "cluster": [
                "members_alive": JSON(members.count { $0.state == "alive" }),
                "members_counted": JSON(members.count), "offers_pending": 0,
                "handing_over": false,
            ],
            "members": .list(members.map(\.json)),
        ]
        return try JSONDecoder().decode(
            StatisticsReport.self, from: Data(document.compactText.utf8))
    }

    static func receipt(
        _ number: Int, held: Int64, confirmed: Int, of all: Int, _ target: JSON
    ) throws -> ReceiptReport {
        let members: [JSON] = (0..<all).map { index in
            index < confirmed
                ? ["node": .text(id(index + 1)), "standing": "confirmed", "elapsed_ms": 3]
                : [
                    "node": .text(id(index + 1)), "standing": "unreachable",
                    "unreachable_since_ms_ago": 8_000,
                ]
        }
        let document: JSON = [
            "receipt": .text("\(id(1))-\(number)"), "id": .text("deploy-\(number)"),
            "mode": "hard", "issued_by": .text(id(1)), "held_ms": .number(held),
            "all_confirmed": .bool(confirmed == all), "confirmed": JSON(confirmed),
            "pending": 0, "unreachable": JSON(all - confirmed), "majority_ms": 2,
            "bounded_in_ms": 4_000, "members": .list(members), "targets": [target],
        ]
        return try JSONDecoder().decode(ReceiptReport.self, from: Data(document.compactText.utf8))
    }

    static func hot(_ rows: [(url: String, accesses: UInt64)]) throws -> HotReport {
        let document = HotEntriesDocument(
            rows: rows.map {
                .init(
                    key: $0.url, url: $0.url, contentType: "image/jpeg", bodyBytes: 10_240,
                    accesses: $0.accesses)
            })
        return try JSONDecoder().decode(HotReport.self, from: Data(document.json.compactText.utf8))
    }
}
