"""Reference data that events are drawn from: platforms, countries, app releases, products, errors; with weights."""

PLATFORMS = ("android", "ios", "web")
PLATFORM_WEIGHTS = (0.56, 0.36, 0.08)

COUNTRIES = ("US", "JP", "DE", "GB", "BR", "KR", "FR", "IN", "CA", "MX", "TR", "ID", "PL", "AU", "ES", "NL")
COUNTRY_WEIGHTS = (22, 11, 8, 7, 8, 6, 6, 9, 4, 4, 4, 4, 2, 2, 2, 1)
# The currency of each country, and how many of its units are one US dollar.
CURRENCIES = (
    *("USD", "JPY", "EUR", "GBP", "BRL", "KRW", "EUR", "INR"),
    *("CAD", "MXN", "TRY", "IDR", "PLN", "AUD", "EUR", "EUR"),
)
UNITS_PER_DOLLAR = (1, 150, 0.9, 0.78, 5.4, 1_380, 0.9, 84, 1.4, 18.5, 34, 16_000, 3.9, 1.5, 0.9, 0.9)

# Values of the contract's ConnectionType.
CONNECTIONS = (0, 1, 2, 3, 4)
CONNECTION_WEIGHTS = (0.02, 0.01, 0.62, 0.32, 0.03)

RELEASES = ("4.0.0", "4.1.0", "4.1.2", "4.2.0", "4.3.0", "4.3.1", "4.4.0", "5.0.0", "5.0.1")

EXPERIMENT_SETS: tuple[tuple[str, ...], ...] = ((), ("offer_b",), ("tutorial_c",), ("offer_b", "tutorial_c"))
EXPERIMENT_WEIGHTS = (0.85, 0.08, 0.05, 0.02)
# By title: the game's experiment in contracts/experiments.yaml, and the variant of each fourth of the players.
EXPOSURES = {
    "Archery Duel": ("archery_short_tutorial", ("control", "control", "three_steps", "no_tutorial")),
    "Kart Rumble": ("kart_new_offer", ("control", "offer_b", "control", "offer_b")),
}

# The last product is a subscription, so purchase events never have it.
PRODUCTS = ("gems_80", "gems_500", "gems_1200", "starter_pack", "season_pass", "gems_6500", "no_ads", "vip_monthly")
PRODUCT_WEIGHTS = (0.40, 0.18, 0.10, 0.14, 0.09, 0.03, 0.06, 0.0)
PRICE_CENTS = (99, 499, 999, 299, 999, 4999, 399, 499)
# A subscription's month lasts six hours, like the short months of a store's sandbox, so that a demo has renewals.
SUBSCRIPTION_SECONDS = 6 * 3_600

# Stores by platform.
STORES = ("google_play", "app_store", "web_shop")

# What an ad earns, in millionths of a US dollar, and who pays it.
AD_MICROS = (1_500, 4_000, 9_000, 22_000)
AD_NETWORKS = ("admob", "applovin", "unity_ads", "ironsource")

# Where players come from, with the campaign.
INSTALLS = (("organic", ""), ("google", "autumn_android"), ("meta", "lookalike_payers"), ("tiktok", "creators"))

# What players gain and spend: the item, the reason, and the least amount.
RESOURCES = (("coins", "level_reward", 25), ("energy", "level_started", -5), ("gems", "purchase", 80))

ERRORS = ("network_timeout", "asset_missing", "save_conflict", "store_unavailable", "out_of_memory")
ERROR_WEIGHTS = (0.55, 0.15, 0.12, 0.10, 0.08)

ATTRIBUTE_SETS: tuple[tuple[tuple[str, str], ...], ...] = (
    (),
    (("placement", "rewarded"),),
    (("placement", "interstitial"), ("network", "admob")),
    (("locale", "en"),),
)

UNKNOWN_GAMES = ("Mystery Quest", "Castle Beta", "Project Falcon")
