#include "CDashboard.h"

static const unsigned char document[] = {
#embed "Page/dashboard.html"
};

static const unsigned char style[] = {
#embed "Page/dashboard.css"
};

// The parts in the order in which one needs another.
static const unsigned char script[] = {
#embed "Page/format.js"
,
#embed "Page/dom.js"
,
#embed "Page/nodes.js"
,
#embed "Page/session.js"
,
#embed "Page/api.js"
,
#embed "Page/stream.js"
,
#embed "Page/recent.js"
,
#embed "Page/timeline.js"
,
#embed "Page/charts.js"
,
#embed "Page/traffic.js"
,
#embed "Page/errors.js"
,
#embed "Page/tiers.js"
,
#embed "Page/ring.js"
,
#embed "Page/rows.js"
,
#embed "Page/members.js"
,
#embed "Page/origins.js"
,
#embed "Page/hot.js"
,
#embed "Page/inspect.js"
,
#embed "Page/receipt.js"
,
#embed "Page/purge.js"
,
#embed "Page/state.js"
,
#embed "Page/drain.js"
,
#embed "Page/theme.js"
,
#embed "Page/page.js"
};

struct cdashboard_text cdashboard_document(void) {
    return (struct cdashboard_text){document, sizeof document};
}

struct cdashboard_text cdashboard_style(void) {
    return (struct cdashboard_text){style, sizeof style};
}

struct cdashboard_text cdashboard_script(void) {
    return (struct cdashboard_text){script, sizeof script};
}
