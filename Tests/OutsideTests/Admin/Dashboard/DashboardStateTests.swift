import Foundation
import Harness
import Testing

extension Outside {
    @Suite("What is wrong is the first thing on the dashboard, in words")
    struct DashboardStateTests {
        /// Expects the name of the worst condition on the page and in the tab, and its sentence,
        /// larger than any other text around it, in the first screen of a phone.
        private func expectFirst(
            _ name: String, says words: String, on page: DashboardStage,
            at location: SourceLocation = #_sourceLocation
        ) throws {
            try page.wait("state", says: name, at: location)
            try page.wait("conditions", says: words, at: location)
            try page.wait(for: "document.title.includes('\(name)')", at: location)
            let first = "document.querySelector('#conditions summary')"
            try page.browser.emulate(width: 390, height: 844)
            try page.wait(
                for: "\(first).getBoundingClientRect().bottom < innerHeight / 2"
                    + " && scrollY === 0", at: location)
            for isDark in [false, true] {
                try page.browser.emulate(width: 390, height: 844, isDark: isDark)
                for look in [PageScript.overflow, .contrast] {
                    let found = try page.browser.value(look.text()) as? [String]
                    #expect(found == [], sourceLocation: location)
                }
            }
            let largest = try page.browser.value(
                "[...document.querySelectorAll('#top *')].every((element) =>"
                    + " parseFloat(getComputedStyle(element).fontSize)"
                    + " <= parseFloat(getComputedStyle(\(first)).fontSize))")
            #expect(largest as? Bool == true, sourceLocation: location)
        }

        @Test("The origin of one site is dead: its address, the sites and the errors by reason")
        func deadOrigin() throws {
            let origin = try ScriptedOrigin()
            let image = TestImage.drawn("alive")
            let path = origin.serve(image, fields: [lasting])
            let port = try ReservedPort()
            let dead = "http://127.0.0.1:\(port.number)"
            let node = try NodeProcess([
                "--site", "alive.example=\(origin.url(""))", "--site", "dead.example=\(dead)",
            ])
            let page = try DashboardStage(node)
            try page.goLive()
            try page.wait("state", says: "Ready")
            let statuses = try (0..<30).map { number in
                _ = try node.get(path, host: "alive.example")
                return try node.get("/\(number)", host: "dead.example").status
            }
            #expect(statuses.allSatisfy { $0 == 502 || $0 == 503 })
            try expectFirst("Origin down", says: dead, on: page)
            try page.wait("origins-table", says: "down")
            try page.wait("sites-table", says: "dead.example")
            try page.wait("error-rows", says: "Origin does not accept connections")
            try page.wait("requests-failing", says: "5xx")
            let rows = "[...document.querySelectorAll('#sites-table tbody tr')]"
            try page.wait(for: "/dead\\.example.*down/.test(\(rows)[0].textContent)")
            try page.wait(for: "\(rows).some((row) => /alive\\.example.*ok/.test(row.textContent))")
            // A node alone has no ring and no members.
            #expect(try !page.element("#cluster").isShown)
            try page.expectNoComplaint()
        }

        @Test("A node is cut off from its cluster: it says so, and shows the members it misses")
        func cutOff() throws {
            let cluster = try ClusterStage(2, isNamed: true, "--fence", "2s")
            let page = try DashboardStage(cluster.nodes[0])
            try page.goLive()
            try page.wait("state", says: "Ready")
            try page.wait("members-table", says: "node-1")
            try page.wait("totals", says: "2 of 2")
            cluster.nodes[1].pause()
            defer { cluster.nodes[1].resume() }
            try expectFirst("Fenced", says: "fenced", on: page)
            try page.wait("totals", says: "1 of 2")
        }

        @Test("A node with another secret is reported where it is rejected")
        func otherSecret() throws {
            let cluster = try ClusterStage(2)
            try cluster.write(ClusterStage.otherSecret, to: "other")
            let port = try ReservedPort.forProcess()
            let stranger = try NodeProcess(
                cluster.clusterFlags(peerPort: port, secret: "other") + ["--join-timeout", "1s"])
            defer { stranger.kill() }
            let page = try DashboardStage(cluster.nodes[0])
            try expectFirst("Peer rejected", says: "has another cluster secret", on: page)
        }

        @Test("The file system of the cache is full", .enabled(if: Mount.isPossible))
        func diskFull() throws {
            let mount = try Mount(size: "6m")
            let stage = try DiskStage(
                "--disk-limit", "16MiB", directory: mount.folder.appendingPathComponent("cache"))
            let page = try DashboardStage(stage.node)
            try page.goLive()
            stage.origin.serveNoise()
            for number in 0..<40 { _ = try stage.get("/" + TestImage.noise(number).name) }
            try expectFirst("Disk full", says: "space", on: page)
            stage.stop(gently: false)
            withExtendedLifetime(mount) {}
        }

        @Test("A certificate is about to expire")
        func certificate() throws {
            let authority = try SecureStage.authority.get()
            let leaf = try authority.leaf(
                "soon", hosts: ["b.example"], daysLeft: 5.5)
            let stage = try SecureStage(certificates: [leaf])
            let page = try DashboardStage(stage.node)
            try expectFirst("Certificate expiring", says: "b.example expires in 5 days", on: page)
            try page.wait("certificates-table", says: "5 days")
        }
    }
}
