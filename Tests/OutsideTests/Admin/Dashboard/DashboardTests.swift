import Foundation
import Harness
import Testing

extension Outside {
    @Suite("The dashboard in a browser")
    struct DashboardTests {
        private let image = TestImage.drawn("seeds")

        @Test(
            "The page shows the state of the node, in the system's colour scheme or the chosen one"
        )
        func loads() throws {
            let stage = try Stage()
            let page = try DashboardStage(stage.node)
            try page.goLive()
            let status = try stage.node.connectAdmin().get("/admin/v1/status")
            let name = try page.text("node-name")
            #expect(name.hasPrefix("Node ") && name.count == 11)
            #expect(status.text.contains("\"node\":\"\(name.dropFirst(5))"))
            try page.wait("state", says: "Ready")
            #expect(try page.element("#healthy").isShown)
            try page.wait(for: "document.title.startsWith('● Ready · node \(name.dropFirst(5))')")
            // A node alone has neither ring nor members.
            #expect(try !page.element("#cluster").isShown)
            func ground() throws -> String {
                let colour = "getComputedStyle(document.body).backgroundColor"
                return try page.browser.value(colour) as? String ?? ""
            }
            let light = try ground()
            try page.browser.emulate(width: 1_440, height: 900, isDark: true)
            let dark = try ground()
            #expect(light != dark)
            try page.choose("theme", "light")
            #expect(try ground() == light)
            try page.open()
            #expect(try ground() == light, "the choice is remembered")
            try page.choose("theme", "auto")
            #expect(try ground() == dark)
            try page.goLive()
            try page.expectNoComplaint()
        }

        @Test("Figures and charts follow the load, and stand still while paused")
        func load() throws {
            let stage = try Stage()
            let path = stage.origin.serve(image, fields: [lasting])
            let page = try DashboardStage(stage.node)
            try page.goLive()
            #expect(try page.text("hit-ratio") == "–")
            #expect(try page.text("hot-empty").hasPrefix("Nothing is stored here yet."))
            // One second of load is enough for a figure; more would only burden the machine.
            let load = ImageLoad(
                port: stage.node.port, connections: 1, seed: 1, [(stage.target(path), image)])
            #expect(load.waitForAnswers(1_000))
            try page.wait(for: "parseFloat(\(DashboardStage.text("requests"))) > 0")
            try page.wait(for: "parseFloat(\(DashboardStage.text("hit-ratio"))) > 50")
            for chart in ["hit", "requests", "saved", "latency"] {
                let line = "document.querySelector('#\(chart)-chart .stroke').getAttribute('d')"
                try page.wait(for: "(window.line = \(line)).length > 10")
                try page.wait(for: "\(line) !== window.line")
            }
            try page.wait(for: "document.querySelector('#hot img')?.naturalWidth === 300")
            #expect(try page.text("kept-meters").contains("1 entry"))
            _ = load.stop()
            try page.click("#pause")
            try page.wait("live", says: "Paused")
            let since = try page.text("uptime")
            // While paused, later activity is not shown.
            #expect(
                try !page.browser.waitUntil(
                    "\(DashboardStage.text("uptime")) !== '\(since)'", seconds: 3))
            try page.click("#pause")
            try page.wait(for: "\(DashboardStage.text("uptime")) !== '\(since)'")
            // The node remembers the load, so a new page shows it, without any further request.
            try expectSoon(20) {
                let history = try stage.node.document("/admin/v1/history")
                return (history["hits"] as? [Int] ?? []).reduce(0, +) > 500
            }
            try page.open()
            let label = "document.querySelector('#hit-chart svg').getAttribute('aria-label')"
            try page.wait(for: "parseFloat(\(label).split('highest ')[1]) > 50")
            try page.expectNoComplaint()
        }

        @Test("A purge from the page removes the image, and its receipt is shown")
        func purge() throws {
            let stage = try Stage()
            let path = stage.origin.serve(image, fields: [lasting])
            for _ in 0..<2 { _ = try stage.get(path, expecting: image) }
            #expect(stage.fetches(path) == 1)
            let page = try DashboardStage(stage.node)
            try page.goLive()
            try page.click("#purge-send")
            try page.wait("purge-problem", says: "Enter at least one URL.")
            try page.element("#purge-lines").type("not a url")
            try page.click("#purge-send")
            try page.wait("purge-problem", says: "“not a url”")
            try page.element("#purge-lines").clear()
            try page.element("#purge-lines").type(stage.origin.url(path))
            try page.click("#purge-send")
            try page.wait("receipt", says: "Gone from the only node")
            #expect(try page.text("receipt").contains("1 of 1 confirmed."))
            #expect(try page.text("purge-problem").isEmpty)
            let later = try stage.get(path, expecting: image)
            #expect(later.matches(image) && !later.isHit && stage.fetches(path) == 2)
            // The purged URL is shown without a scheme.
            try page.wait("purges", says: String(stage.origin.url(path).dropFirst(5)))
            try page.choose("kind", "everything")
            try page.click("#purge-send")
            try page.wait("purge-problem", says: "Type the word everything to confirm.")
            #expect(try stage.get(path).isHit)
            try page.element("#purge-confirm").type("everything")
            try page.choose("mode", "soft")
            try page.click("#purge-send")
            try page.wait("receipt", says: "Stale on the only node")
            _ = try stage.get(path, expecting: image)
            #expect(stage.fetches(path) == 3)
            // The node refuses an invalid URL, and the refusal is also logged in the console.
            #expect(try page.browser.consoleMessages().allSatisfy { $0.contains("422") })
        }

        @Test("An image's metadata is shown, and missing entries are reported")
        func inspect() throws {
            let stage = try Stage()
            let path = stage.origin.serve(image, fields: [lasting], etag: "\"seeds-1\"")
            _ = try stage.get(path, expecting: image)
            let page = try DashboardStage(stage.node)
            try page.goLive()
            let field = try page.element("#inspect-url")
            try field.type("seeds")
            try page.browser.press(.enter)
            try page.wait("inspect-result", says: "Enter an absolute URL")
            try field.clear()
            try field.type(stage.origin.url(path))
            try page.browser.press(.enter)
            try page.wait("inspect-result", says: "\"seeds-1\"")
            try page.wait(for: "document.querySelector('.picture img')?.naturalWidth === 300")
            let said = try page.text("inspect-result")
            for words in [
                "seeds.svg", "image/svg+xml", "300 × 200 px", "Fresh for", "max-age=3600",
            ] {
                #expect(said.contains(words), "\(words)")
            }
            // Keys and invalidation versions are internal, and this node has no disk.
            #expect(!said.contains("Key") && !said.contains("Invalidation"))
            #expect(said.contains("Accessestoo few to be counted"))
            for _ in 0..<5 { _ = try stage.get(path, expecting: image) }
            try page.wait(for: "document.querySelector('#hot button')")
            try page.wait(for: "parseInt(document.querySelector('#hot .meta').textContent) > 0")
            try page.click("#hot button")
            // The same count as in the list.
            try page.wait(
                for: "(/(\\d+) in memory/.exec(\(DashboardStage.text("inspect-result"))) ?? [])[1]"
                    + " === document.querySelector('#hot .meta').textContent.split(' ')[0]")
            try page.click("#inspect-result .buttons button")
            #expect(try page.element("#purge-lines").property("value") == stage.origin.url(path))
            try page.browser.press(.enter)
            try page.wait("inspect-result", says: "Not stored here")
            try field.clear()
            // Markup in a name is shown as text.
            try field.type("http://127.0.0.1/<img src=x onerror=document.title=1>")
            try page.browser.press(.enter)
            try page.wait("inspect-result", says: "onerror=document.title=1>")
            #expect(try page.browser.elements("#inspect-result img").isEmpty)
            #expect(try page.browser.consoleMessages().allSatisfy { $0.contains("404") })
        }
    }
}
