import Harness
import NodeConfiguration
import Testing

@Suite("The budget of file descriptors")
struct DescriptorBudgetTests {
    private func budget(
        _ descriptors: Int, loops: Int = 2, _ flags: [String: [String]] = [:]
    ) throws -> DescriptorBudget {
        DescriptorBudget(try resolve(flags: flags), descriptors: descriptors, loops: loops)
    }

    @Test(
        "All shares fit together, once there is space for any client",
        arguments: [600, 1024, 2048, 4096, 65_536, 1 << 20])
    func sharesFit(descriptors: Int) throws {
        for loops in [1, 2, 16, 64] {
            for disk in ["0", "8MiB", "100GiB"] {
                let budget = try budget(
                    descriptors, loops: loops,
                    ["disk-limit": [disk], "cache-dir": ["/nowhere"]])
                let taken =
                    budget.connectionsMax + budget.fetchesMax + budget.idlePerLoop * loops + 160
                let hasRoom = budget.connectionsMax > 16
                #expect(taken <= descriptors || !hasRoom, "\(budget)")
                #expect(hasRoom || !budget.warnings.isEmpty, "\(budget)")
            }
        }
    }

    @Test("Few connections are reported with a limit that suffices")
    func advice() throws {
        for (descriptors, flags) in [
            (256, [:]), (1024, [:]), (1024, ["fills-limit": ["5000"]]),
            (4096, ["connections-limit": ["9000"]]),
            (1024, ["disk-limit": ["100GiB"], "cache-dir": ["/nowhere"]]),
        ] as [(Int, [String: [String]])] {
            let low = try budget(descriptors, flags)
            let text = try #require(low.warnings.first)
            #expect(low.warnings.count == 1 && text.contains(", \(descriptors), leaves room for"))
            let after = try #require(text.split(separator: "raise it to ").last)
            let needed = try #require(Int(after.prefix(while: \.isNumber)))
            #expect(try budget(needed, flags).warnings.isEmpty, "\(text)")
            #expect(try !budget(needed - 1024, flags).warnings.isEmpty, "\(text)")
        }
    }

    @Test("A node in a cluster reserves two connections for each possible member")
    func cluster() throws {
        let alone = try budget(4096)
        let member = try withTemporaryFile(String(repeating: "s", count: 32)) { path in
            try budget(4096, ["cluster-secret-file": [path]])
        }
        #expect(alone.connectionsMax - member.connectionsMax == 512)
        #expect(member.fetchesMax == alone.fetchesMax && member.idlePerLoop == alone.idlePerLoop)
    }

    @Test("Configured connections are granted as far as there is space")
    func asked() throws {
        #expect(try budget(65_536, ["connections-limit": ["20"]]).connectionsMax == 20)
        #expect(try budget(65_536, ["connections-limit": ["20"]]).warnings.isEmpty)
        let much = try budget(4096, ["connections-limit": ["9000"]])
        #expect(much.connectionsMax < 4096)
        #expect(much.warnings.first?.hasPrefix("setting connections-limit is 9000, but") == true)
    }
}
